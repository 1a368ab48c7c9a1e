/** Describes problems of a configuration so that the operator can fix them without reading more. */
import { hideSecrets } from "./hide.ts";
import { formatPath, isHidden, isObject, type Path } from "./path.ts";

export interface Problem {
  /** The place in the file, e.g. `gateway.http.port`. */
  readonly path: string;
  /** What was found there, and what is allowed. */
  readonly message: string;
}

/** Yielded as they are found. */
export type Problems = Generator<Problem, void, void>;

/** Thrown if a configuration cannot be used; carries all its problems, not only the first. */
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

export function problem(path: Path, message: string): Problem {
  return { path: formatPath(path), message };
}

/** A value that its place does not allow. */
export function misfit(path: Path, value: unknown, allowed: string): Problem {
  return problem(path, `found ${describeValue(path, value)}; allowed: ${allowed}`);
}

/** The system's name for a failure, e.g. `ENOENT`; undefined for anything else. */
export function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof Error && "code" in thrown ? String(thrown.code) : undefined;
}

/** A value as a problem may show it: of secrets only the type. */
function describeValue(path: Path, value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isObject(value)) return "an object";
  if (isHidden(path) || surroundsSecret(path)) return value === "" ? "an empty string" : `a ${typeof value}`;
  if (typeof value === "string") return `the string ${JSON.stringify(shorten(hideSecrets(value)))}`;
  return String(value);
}

/** Whoever forgets the object around a secret writes the secret in its place. */
function surroundsSecret(path: Path): boolean {
  const name = path.findLast((key) => typeof key === "string");
  return name === "auth" || name === "tokens" || name === "set_env";
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
