/** Cuts text into words, this model's tokens: a word and the blanks after it, so that joined they are the text. */
import { setImmediate as breathe } from "node:timers/promises";

export function* words(text: string): Generator<string, void, void> {
  for (const [word] of text.matchAll(/\s*\S+\s*|\s+/g)) yield word;
}

/** Arguments have few blanks, so they are cut finer: a client must be able to read them in pieces. */
export function* argumentPieces(text: string): Generator<string, void, void> {
  for (const [piece] of text.matchAll(/\s*\S{1,6}\s*|\s+/gu)) yield piece;
}

/** Characters of words read without a pause: a few milliseconds. */
const maxAtOnce = 500_000;
/** To find a word takes as long as to read this many. */
const charactersPerWord = 25;

/** Reads one after the other, because a list of all words would be many times the size of the text. */
export async function countWords(texts: Iterable<string>): Promise<number> {
  let count = 0;
  let read = 0;
  for (const text of texts) {
    for (const [word] of text.matchAll(/\S+/g)) {
      count += 1;
      read += word.length + charactersPerWord;
      if (read < maxAtOnce) continue;
      read = 0;
      await breathe();
    }
  }
  return count;
}

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
