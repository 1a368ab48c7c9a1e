/** Writes short strings that match a regular expression, by reading the expression: as a whole it never runs. */

/** A string that matches: `nth` picks other characters of a class, `more` adds so many repetitions where allowed. */
export type PatternSampler = (nth: number, more: number) => string | undefined;

/** Knows characters, classes, groups, alternatives and quantifiers; gives up on the rest (look-around, references). */
export function readPattern(pattern: string): PatternSampler | undefined {
  const tokens = (pattern.length <= maxPatternCharacters && pattern.match(tokenPattern)) || [];
  if (tokens.join("") !== pattern) return undefined;
  const reader: Reader = { tokens, at: 0, classes: new Map() };
  const sample = readAlternatives(reader);
  return reader.at === tokens.length ? sample : undefined;
}

interface Reader {
  readonly tokens: readonly string[];
  at: number;
  /** The characters of each class read so far: testing them takes most of the time. */
  readonly classes: Map<string, readonly string[]>;
}

const maxPatternCharacters = 1_000;
const maxRepeatedCharacters = 10_000;

/** A group's start, a class, an escape, a quantifier, or any other character. */
const tokenPattern =
  /\((?:\?:|\?<[A-Za-z_]\w*>|(?!\?))|\[(?:\\.|[^\\\]])*\]|\\(?:u[\dA-Fa-f]{4}|x[\dA-Fa-f]{2}|[dDwWsSnrt]|[^A-Za-z\d])|(?:[*+?]|\{\d+(?:,\d*)?\})\??|[^([\\]/gsu;

/** The first alternative is the sample; the others are only read. */
function readAlternatives(reader: Reader): PatternSampler | undefined {
  const first = readSequence(reader);
  while (reader.tokens[reader.at] === "|") {
    reader.at += 1;
    if (readSequence(reader) === undefined) return undefined;
  }
  return first;
}

function readSequence(reader: Reader): PatternSampler | undefined {
  const pieces: PatternSampler[] = [];
  for (;;) {
    const token = reader.tokens[reader.at];
    if (token === undefined || token === "|" || token === ")") break;
    reader.at += 1;
    const atom = token.startsWith("(") ? readGroup(reader) : readAtom(token, reader.classes);
    if (atom === undefined) return undefined;
    pieces.push(repeat(atom, readQuantifier(reader)));
  }
  return (nth, more) => {
    let sample = "";
    for (const piece of pieces) {
      const text = piece(nth, more);
      if (text === undefined) return undefined;
      sample += text;
    }
    return sample;
  };
}

function readGroup(reader: Reader): PatternSampler | undefined {
  const sample = readAlternatives(reader);
  const isClosed = reader.tokens[reader.at] === ")";
  reader.at += 1;
  return isClosed ? sample : undefined;
}

function readAtom(token: string, classes: Reader["classes"]): PatternSampler | undefined {
  if (isQuantifier(token)) return undefined;
  if (token === "^" || token === "$") return () => "";
  const characters = classes.get(token) ?? (/^[[\\.]/.test(token) ? readClass(token) : [token]);
  classes.set(token, characters);
  return (nth) => characters[nth % Math.max(characters.length, 1)];
}

/** A single class can be run, on one character at a time. What it names itself may not be in the alphabet. */
function readClass(token: string): readonly string[] {
  const one = toExpression(`^${token}$`);
  const named = token.replaceAll(/\\[ux]([\dA-Fa-f]{2,4})/g, (_, code) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
  return [...new Set([...alphabet, ...named])].filter((character) => one?.test(character));
}

const alphabet = [
  ..."abcdefghijklmnopqrstuvwxyz",
  ..."ABCDEFGHIJKLMNOPQRSTUVWXYZ",
  ..."0123456789",
  ..." _-.,:;!?@#%&*+=/'\"()[]{}<>|~^$`\\\t\n\r",
];

function toExpression(source: string): RegExp | undefined {
  for (const mode of ["u", ""]) {
    try {
      return new RegExp(source, mode);
    } catch {
      // It may be valid in the other mode.
    }
  }
  return undefined;
}

interface Bounds {
  readonly least: number;
  readonly most: number;
}

function isQuantifier(token: string): boolean {
  return /^(?:[*+?]|\{\d)/.test(token);
}

/** How often the preceding atom may occur. */
function readQuantifier(reader: Reader): Bounds {
  const token = reader.tokens[reader.at] ?? "";
  if (!isQuantifier(token)) return { least: 1, most: 1 };
  reader.at += 1;
  const [least = "", most = least] = (signs.get(token.charAt(0)) ?? token.replaceAll(/[{}?]/g, "")).split(",");
  return { least: Number(least), most: most === "" ? Infinity : Number(most) };
}

/** What the short quantifiers stand for. */
const signs: ReadonlyMap<string, string> = new Map([
  ["*", "0,"],
  ["+", "1,"],
  ["?", "0,1"],
]);

function repeat(sample: PatternSampler, { least, most }: Bounds): PatternSampler {
  return (nth, more) => {
    const text = sample(nth, more);
    const times = Math.min(least + more, most);
    return text === undefined || text.length * times > maxRepeatedCharacters ? undefined : text.repeat(times);
  };
}
