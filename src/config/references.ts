/** Replaces `${ENV_NAME}` in any string and `{"file": "..."}` at any secret with their values. */
import { resolve as toAbsolute } from "node:path";
import type { LoadSurroundings } from "./load.ts";
import { isObject, isSecret, formatPath, type Path } from "./path.ts";
import { codeOf, misfit, problem, type Problem } from "./problem.ts";

/** A value as problems may show it: a reference stays as it is written in the file. */
export type Shown = (path: Path, value: unknown) => unknown;

/** Marks an unresolved reference, so that it is not reported again as a missing or wrong value. */
export const unresolved = Symbol("unresolved");

/** The value, the problems of its references, and how to show it. Paths are relative to `folder`. */
export function resolveReferences(
  file: unknown,
  folder: string,
  { env, readText }: Pick<LoadSurroundings, "env" | "readText">,
) {
  const problems: Problem[] = [];
  const written = new Map<string, unknown>();

  function resolve(value: unknown, path: Path): unknown {
    if (typeof value === "string") return expand(value, path);
    if (Array.isArray(value)) return value.map((entry, index) => resolve(entry, [...path, index]));
    if (!isObject(value)) return value;
    if (isSecret(path) && Object.hasOwn(value, "file")) return readReference(value, path);
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, resolve(entry, [...path, key])]));
  }

  function refuse(path: Path, message: string): typeof unresolved {
    problems.push(problem(path, message));
    return unresolved;
  }

  function expand(text: string, path: Path): string | typeof unresolved {
    if (!text.includes("${")) return text;
    const before = problems.length;
    const expanded = text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (reference: string, name: string | undefined) => {
      if (name === undefined) return "${";
      // Every object also inherits names, such as `constructor`.
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      if (!/^[A-Za-z_]\w*$/.test(name) || !reference.endsWith("}")) {
        refuse(path, "is not a valid reference to the environment; write ${NAME}, or $${ for ${ itself");
      } else if (value === undefined) {
        const remedy = "set it in the gateway's environment";
        refuse(path, `refers to the environment variable ${name}, which is not set; ${remedy}`);
      }
      return value ?? "";
    });
    written.set(formatPath(path), text);
    return problems.length === before ? expanded : unresolved;
  }

  function readReference(reference: Readonly<Record<string, unknown>>, path: Path): string | typeof unresolved {
    written.set(formatPath(path), reference);
    const { file: given, ...others } = reference;
    const [other] = Object.keys(others);
    if (other !== undefined) {
      return refuse([...path, other], "unknown key; a reference to a file has only the key 'file'");
    }
    if (typeof given !== "string" || given === "") {
      problems.push(misfit([...path, "file"], given, "the path of a file"));
      return unresolved;
    }
    const name = expand(given, [...path, "file"]);
    if (name === unresolved) return unresolved;
    const file = toAbsolute(folder, name);
    try {
      // Editors and `echo` add a newline, which is not part of the secret.
      const secret = readText(file).trim();
      return secret || refuse(path, `refers to the file ${file}, which is empty; write the secret into it`);
    } catch (thrown) {
      const remedy = "create it, or let the gateway's user read it";
      return refuse(path, `refers to the file ${file}, which cannot be read (${codeOf(thrown) ?? thrown}); ${remedy}`);
    }
  }

  const shown: Shown = (path, value) => written.get(formatPath(path)) ?? value;
  return { value: resolve(file, []), problems, shown };
}
