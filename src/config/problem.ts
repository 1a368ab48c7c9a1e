/** What is wrong with a configuration, so that the operator can mend it without reading more. */

export interface Problem {
  /** The place in the file, e.g. `gateway.http.port`. */
  readonly path: string;
  /** What was found there, and what is allowed. */
  readonly message: string;
}

/** A configuration that cannot be used, with all its problems. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];
  /** The file that has them. */
  readonly file: string | undefined;

  constructor(problems: readonly Problem[], file?: string) {
    super(problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
    this.problems = problems;
    this.file = file;
  }
}

export type Path = readonly (string | number)[];

export function problem(path: Path, message: string): Problem {
  return { path: formatPath(path), message };
}

/** `gateway.http.tokens[0].name`; a key that is not a plain word is in brackets. */
export function formatPath(path: Path): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (!/^[\w$-]+$/.test(key)) text += `[${JSON.stringify(key)}]`;
    else text += text === "" ? key : `.${key}`;
  }
  return text === "" ? "(the file)" : text;
}

/** The known word with the fewest other letters, if it is near enough to be meant. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(1, Math.floor(word.length / 3));
  const [best] = known
    .map((candidate) => [candidate, countOthers(word.toLowerCase(), candidate)] as const)
    .filter(([, others]) => others <= most)
    .toSorted(([, one], [, other]) => one - other);
  return best?.[0];
}

/** Letters that only one of them has: most slips leave out, add or swap some. */
function countOthers(one: string, other: string): number {
  let rest = other;
  let missing = 0;
  for (const letter of one) {
    const shorter = rest.replace(letter, () => "");
    if (shorter === rest) missing += 1;
    rest = shorter;
  }
  return missing + rest.length;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What stands at a place; undefined where nothing does. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((part, key) => (isObject(part) && Object.hasOwn(part, key) ? part[key] : undefined), value);
}

/** The system's name for a failure, e.g. `ENOENT`. */
export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : undefined;
}
