/** Shows a configuration without giving its secrets away. */
import { isObject, isSecret, type Path } from "./path.ts";
import { hideUserinfo } from "./problem.ts";

/** The same value with `***` in place of every secret. */
export function maskSecrets(value: unknown, path: Path = []): unknown {
  if (Array.isArray(value)) return value.map((entry, index) => maskSecrets(entry, [...path, index]));
  if (isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, maskSecrets(entry, [...path, key])]));
  }
  if (typeof value !== "string") return value;
  return isSecret(path) ? "***" : hideUserinfo(value);
}
