/** Cuts text into words, this model's tokens: a word and the blanks after it, so that joined they are the text. */
import { setImmediate as breathe } from "node:timers/promises";

export function* words(text: string): Generator<string, void, void> {
  for (const [word] of text.matchAll(/\s*\S+\s*|\s+/g)) yield word;
}

/** Arguments have few blanks, so they are cut finer: a client must be able to read them in pieces. */
export function* argumentPieces(text: string): Generator<string, void, void> {
  for (const [piece] of text.matchAll(/\s*\S{1,6}\s*|\s+/gu)) yield piece;
}

/** Characters read without a pause: a few milliseconds. */
const maxAtOnce = 500_000;

/** Reads character codes, because a list of all words would be many times the size of the text. */
export async function countWords(texts: Iterable<string>): Promise<number> {
  let count = 0;
  let read = 0;
  for (const text of texts) {
    let afterBlank = true;
    for (let at = 0; at < text.length; at += 1) {
      const blank = isBlank(text.charCodeAt(at));
      if (afterBlank && !blank) count += 1;
      afterBlank = blank;
      read += 1;
      if (read % maxAtOnce === 0) await breathe();
    }
  }
  return count;
}

/** What a regular expression calls `\s`. */
function isBlank(code: number): boolean {
  if (code < 0xa0) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return code === 0xa0 || (code >= 0x1680 && otherBlanks.has(code));
}

const otherBlanks: ReadonlySet<number> = new Set([
  0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029,
  0x202f, 0x205f, 0x3000, 0xfeff,
]);

/** Matches read without a pause: a few milliseconds as well. */
const maxMatchesAtOnce = 20_000;

/** Which names occur in the text as whole words, by first occurrence. The text is read once for all of them. */
export async function findNames(text: string, names: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  let read = 0;
  for (const [word] of names.size === 0 ? [] : text.matchAll(/[\p{L}\p{N}_-]+/gu)) {
    if (names.has(word)) found.add(word);
    if (found.size === names.size) break;
    read += 1;
    if (read % maxMatchesAtOnce === 0) await breathe();
  }
  return found;
}

/** Values that the text names: `city=Paris`, `city: "New York"`. The first for each name counts. */
export async function readNamedValues(text: string): Promise<ReadonlyMap<string, string>> {
  const told = new Map<string, string>();
  let read = 0;
  for (const match of text.matchAll(/(?<![\w-])([A-Za-z_][\w-]*)[ \t]*[=:][ \t]*("[^"\n]*"|[^\s,;"]+)/g)) {
    const [, name = "", value = ""] = match;
    if (!told.has(name)) told.set(name, value.startsWith('"') ? value.slice(1, -1) : withoutSentenceEnd(value));
    read += 1;
    if (read % maxMatchesAtOnce === 0) await breathe();
  }
  return told;
}

/** `city: Paris.` means Paris. */
function withoutSentenceEnd(value: string): string {
  let end = value.length;
  while (end > 0 && ".!?)".includes(value.charAt(end - 1))) end -= 1;
  return value.slice(0, end);
}
