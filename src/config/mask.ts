/** Shows a configuration without its secrets. */
import { hideSecrets, star } from "./hide.ts";
import { isHidden, isModel, isObject, type Path } from "./path.ts";
import type { Shown } from "./references.ts";

/** The value with `***` in place of every secret. A reference is shown as it is written, never its value. */
export function maskSecrets(value: unknown, shown: Shown = asItIs, path: Path = [], before?: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((entry, index) => maskSecrets(entry, shown, [...path, index], value[index - 1]));
  }
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, maskSecrets(entry, shown, [...path, key])]),
    );
  }
  const written = shown(path, value);
  // A reference to a file only names it.
  if (typeof written !== "string" || isModel(path)) return written;
  return isHidden(path) ? star(written) : hideSecrets(written, before);
}

const asItIs: Shown = (_path, value) => value;
