/** Cuts text into words, the tokens of this model: a word and the blanks after it, so that all of them joined are the text. */

export function* words(text: string): Generator<string, void, void> {
  for (const [word] of text.matchAll(/\s*\S+\s*|\s+/g)) yield word;
}

/** A call's arguments have few blanks, so they are cut finer: what reads them must be able to read them in pieces. */
export function* argumentPieces(text: string): Generator<string, void, void> {
  for (const [piece] of text.matchAll(/\s*\S{1,6}\s*|\s+/gu)) yield piece;
}

export function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** Whether the name stands in the text as a word of its own; where, or -1. */
export function findName(text: string, name: string): number {
  if (name === "") return -1;
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1)) {
    const before = text[at - 1] ?? " ";
    const after = text[at + name.length] ?? " ";
    if (!isNameCharacter(before) && !isNameCharacter(after)) return at;
  }
  return -1;
}

/** What the text says of named things: `city=Paris`, `city: "New York"`. The first word on each stands. */
export function readNamedValues(text: string): ReadonlyMap<string, string> {
  const told = new Map<string, string>();
  for (const match of text.matchAll(/(?<![\w-])([A-Za-z_][\w-]*)[ \t]*[=:][ \t]*("[^"\n]*"|[^\s,;"]+)/g)) {
    const [, name = "", value = ""] = match;
    if (!told.has(name)) told.set(name, value.startsWith('"') ? value.slice(1, -1) : withoutSentenceEnd(value));
  }
  return told;
}

function isNameCharacter(character: string): boolean {
  return /[\p{L}\p{N}_-]/u.test(character);
}

/** `city: Paris.` speaks of Paris. */
function withoutSentenceEnd(value: string): string {
  let end = value.length;
  while (end > 0 && ".!?)".includes(value.charAt(end - 1))) end -= 1;
  return value.slice(0, end);
}
