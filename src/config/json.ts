/** Parses JSON that may have comments and trailing commas, and says where it is wrong. */
import type { ParseError } from "jsonc-parser";
import { ConfigError, problem } from "./problem.ts";

/** The text itself is never quoted: it may contain secrets. */
export async function parseJson(text: string, file: string): Promise<unknown> {
  const plain = text.replace(/^\uFEFF/, "");
  try {
    return JSON.parse(plain);
  } catch {
    // Only a file that is no plain JSON needs the package.
    const { default: jsonc } = await import("jsonc-parser");
    const errors: ParseError[] = [];
    const value: unknown = jsonc.parse(plain, errors, { allowTrailingComma: true });
    const [first] = errors;
    if (first === undefined) return value;
    const before = plain.slice(0, first.offset).split("\n");
    const column = (before.at(-1)?.length ?? 0) + 1;
    // `CommaExpected` and the like.
    const fault = jsonc.printParseErrorCode(first.error).replaceAll(/(?<=.)(?=[A-Z])/g, " ");
    const where = `line ${before.length}, column ${column}`;
    throw new ConfigError([problem([], `not valid JSON: ${where}: ${fault.toLowerCase()}`)], file);
  }
}
