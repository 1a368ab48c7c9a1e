/** What is wrong with a configuration, said so that the operator can mend it without reading anything else. */
import { hideSecrets } from "./hide.ts";
import { formatPath, isHidden, isObject, type Path } from "./path.ts";

export interface Problem {
  /** The place in the file, e.g. `gateway.http.port`. */
  readonly path: string;
  /** What was found there, and what is allowed. */
  readonly message: string;
}

/** Each is told as it is found. */
export type Problems = Generator<Problem, void, void>;

/** Happens when a configuration cannot be used; carries all that is wrong with it, not only the first. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
    this.problems = problems;
  }
}

export function problem(path: Path, message: string): Problem {
  return { path: formatPath(path), message };
}

/** A value that is not what its place allows. */
export function misfit(path: Path, value: unknown, allowed: string): Problem {
  return problem(path, `found ${describeValue(path, value)}; allowed: ${allowed}`);
}

/** A value as a problem may show it: secrets by their kind only. */
function describeValue(path: Path, value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isObject(value)) return "an object";
  if (isHidden(path)) return value === "" ? "an empty string" : `a ${typeof value}`;
  if (typeof value === "string") return `the string ${JSON.stringify(shorten(hideSecrets(value)))}`;
  return String(value);
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
