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

  function expand(text: string, path: Path): string | typeof unresolved {
    if (!text.includes("${")) return text;
    const before = problems.length;
    const expanded = text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (reference: string, name: string | undefined) => {
      if (name === undefined) return "${";
      if (!/^[A-Za-z_]\w*$/.test(name) || !reference.endsWith("}")) {
        const remedy = "write ${NAME}, or $${ for ${ itself";
        problems.push(problem(path, `is not a valid reference to the environment; ${remedy}`));
      } else if (env[name] === undefined) {
        problems.push(problem(path, `refers to the environment variable ${name}, which is not set`));
      }
      return env[name] ?? "";
    });
    written.set(formatPath(path), text);
    return problems.length === before ? expanded : unresolved;
  }

  function refuse(found: Problem): typeof unresolved {
    problems.push(found);
    return unresolved;
  }

  function readReference(reference: Readonly<Record<string, unknown>>, path: Path): string | typeof unresolved {
    written.set(formatPath(path), reference);
    const other = Object.keys(reference).find((key) => key !== "file");
    if (other !== undefined) {
      return refuse(problem([...path, other], "unknown key; a reference to a file has only the key 'file'"));
    }
    if (typeof reference.file !== "string" || reference.file === "") {
      return refuse(misfit([...path, "file"], reference.file, "the path of a file"));
    }
    const name = expand(reference.file, [...path, "file"]);
    if (name === unresolved) return unresolved;
    const file = toAbsolute(folder, name);
    try {
      // Editors and `echo` add a newline, which is not part of the secret.
      const secret = readText(file).trim();
      if (secret !== "") return secret;
      return refuse(problem(path, `refers to the file ${file}, which is empty; write the secret into it`));
    } catch (thrown) {
      const reason = codeOf(thrown) ?? String(thrown);
      return refuse(problem(path, `refers to the file ${file}, which cannot be read (${reason})`));
    }
  }

  const shown: Shown = (path, value) => written.get(formatPath(path)) ?? value;
  return { value: resolve(file, []), problems, shown };
}
