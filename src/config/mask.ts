/** Shows a configuration without giving its secrets away. */
import { isHidden, isObject, namesSecret, type Path } from "./path.ts";
import { hideSecrets } from "./problem.ts";

/** The same value with `***` in place of every secret. */
export function maskSecrets(value: unknown, path: Path = []): unknown {
  if (Array.isArray(value)) return value.map((entry, index) => maskEntry(entry, value[index - 1], [...path, index]));
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, maskSecrets(entry, [...path, key])]));
  }
  if (typeof value !== "string") return value;
  return isHidden(path) ? "***" : hideSecrets(value);
}

/** Among the arguments of a program, what follows `--api-key` is one. */
function maskEntry(entry: unknown, before: unknown, path: Path): unknown {
  const isValue = typeof before === "string" && /^--?[^=]+$/.test(before) && namesSecret(before);
  return isValue && typeof entry === "string" ? "***" : maskSecrets(entry, path);
}
