/** Writes a short string that matches a regular expression, by reading the expression, never running it. */

/**
 * Knows literals, classes, escapes, groups, alternatives and quantifiers; gives up on the rest (look-around,
 * references). `nth` picks other characters of a class, `more` adds so many repetitions where allowed.
 */
export function samplePattern(pattern: string, nth: number, more: number): string | undefined {
  if (pattern.length > maxPatternCharacters) return undefined;
  const reader: Reader = { characters: [...pattern], at: 0, nth, more };
  const sample = readAlternatives(reader);
  return reader.at === reader.characters.length ? sample : undefined;
}

interface Reader {
  readonly characters: readonly string[];
  at: number;
  readonly nth: number;
  readonly more: number;
}

type Test = (character: string) => boolean;

const maxPatternCharacters = 1_000;
const maxRepeatedCharacters = 10_000;

/** The first alternative is the sample; the others are only read. */
function readAlternatives(reader: Reader): string | undefined {
  const first = readSequence(reader);
  while (peek(reader) === "|") {
    reader.at += 1;
    if (readSequence(reader) === undefined) return undefined;
  }
  return first;
}

function readSequence(reader: Reader): string | undefined {
  let sample = "";
  for (let next = peek(reader); next !== undefined && next !== "|" && next !== ")"; next = peek(reader)) {
    const atom = readAtom(reader);
    const times = readQuantifier(reader);
    if (atom === undefined || times === undefined || atom.length * times > maxRepeatedCharacters) return undefined;
    sample += atom.repeat(times);
  }
  return sample;
}

function readAtom(reader: Reader): string | undefined {
  const character = next(reader);
  switch (character) {
    case "^":
    case "$":
      return "";
    case ".":
      return pick(reader, () => true);
    case "(":
      return readGroup(reader);
    case "[":
      return readClass(reader);
    case "\\":
      return readEscape(reader);
    case "*":
    case "+":
    case "?":
      return undefined;
    default:
      return character;
  }
}

function readGroup(reader: Reader): string | undefined {
  if (peek(reader) === "?") {
    const opening = /^\?(?::|<[A-Za-z_]\w*>)/.exec(reader.characters.slice(reader.at, reader.at + 64).join(""));
    if (opening === null) return undefined;
    reader.at += opening[0].length;
  }
  const sample = readAlternatives(reader);
  return next(reader) === ")" ? sample : undefined;
}

const controls: ReadonlyMap<string, string> = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

const shorthands: ReadonlyMap<string, Test> = new Map([
  ["d", (character: string) => /\d/.test(character)],
  ["D", (character: string) => /\D/.test(character)],
  ["w", (character: string) => /\w/.test(character)],
  ["W", (character: string) => /\W/.test(character)],
  ["s", (character: string) => /\s/.test(character)],
  ["S", (character: string) => /\S/.test(character)],
]);

function readEscape(reader: Reader): string | undefined {
  const character = next(reader);
  const shorthand = shorthands.get(character ?? "");
  if (shorthand !== undefined) return pick(reader, shorthand);
  return character === undefined ? undefined : escaped(reader, character);
}

/** The character that an escape stands for; undefined for letters and digits with another meaning. */
function escaped(reader: Reader, character: string): string | undefined {
  const digits = character === "u" ? 4 : character === "x" ? 2 : 0;
  if (digits > 0) {
    const code = reader.characters.slice(reader.at, reader.at + digits).join("");
    reader.at += digits;
    return /^[0-9A-Fa-f]+$/.test(code) && code.length === digits
      ? String.fromCharCode(Number.parseInt(code, 16))
      : undefined;
  }
  return controls.get(character) ?? (/[A-Za-z0-9]/.test(character) ? undefined : character);
}

function readClass(reader: Reader): string | undefined {
  const negated = peek(reader) === "^";
  if (negated) reader.at += 1;
  const tests: Test[] = [];
  let firstCharacter: string | undefined;
  while (peek(reader) !== "]") {
    let from = next(reader);
    if (from === "\\") {
      const letter = next(reader) ?? "";
      const shorthand = shorthands.get(letter);
      if (shorthand !== undefined) {
        tests.push(shorthand);
        continue;
      }
      from = escaped(reader, letter);
    }
    if (from === undefined) return undefined;
    const to = readRangeEnd(reader) ?? from;
    const start = from;
    firstCharacter ??= start;
    tests.push((character) => character >= start && character <= to);
  }
  reader.at += 1;
  return (
    pick(reader, (character) => tests.some((test) => test(character)) !== negated) ??
    (negated ? undefined : firstCharacter)
  );
}

function readRangeEnd(reader: Reader): string | undefined {
  const after = reader.characters[reader.at + 1];
  if (peek(reader) !== "-" || after === undefined || after === "]") return undefined;
  reader.at += 2;
  return after === "\\" ? escaped(reader, next(reader) ?? "") : after;
}

/** How often the preceding atom occurs in the sample. */
function readQuantifier(reader: Reader): number | undefined {
  const rest = reader.characters.slice(reader.at, reader.at + 24).join("");
  const [quantifier] = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(rest) ?? [""];
  reader.at += quantifier.length;
  if (quantifier === "") return 1;
  if (quantifier.startsWith("*")) return reader.more;
  if (quantifier.startsWith("+")) return 1 + reader.more;
  if (quantifier.startsWith("?")) return Math.min(1, reader.more);
  const [least = 0, most] = quantifier.replaceAll(/[{}?]/g, "").split(",");
  if (most === undefined) return Number(least);
  return Math.min(Number(least) + reader.more, most === "" ? Infinity : Number(most));
}

const alphabet = [
  ..."abcdefghijklmnopqrstuvwxyz",
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZ",
  ..."0123456789",
  ..." _-.,:;!?@#%&*+=/'\"()[]{}<>|~^$`\\\t\n",
];

function pick(reader: Reader, test: Test): string | undefined {
  const allowed = alphabet.filter(test);
  return allowed[reader.nth % Math.max(allowed.length, 1)];
}

function peek(reader: Reader): string | undefined {
  return reader.characters[reader.at];
}

function next(reader: Reader): string | undefined {
  const character = reader.characters[reader.at];
  reader.at += 1;
  return character;
}
