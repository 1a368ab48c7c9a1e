/** Shows a configuration without giving its secrets away. */
import { hideSecrets, star } from "./hide.ts";
import { isHidden, isObject, namesSecret, type Path } from "./path.ts";
import type { Shown } from "./references.ts";

/** The same value with `***` in place of every secret. What came through a reference is shown as it is written, never as what it stands for. */
export function maskSecrets(value: unknown, shown: Shown = asItIs, path: Path = []): unknown {
  if (Array.isArray(value)) {
    return value.map((entry, index) => maskEntry(entry, value[index - 1], shown, [...path, index]));
  }
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, maskSecrets(entry, shown, [...path, key])]),
    );
  }
  if (typeof value !== "string") return value;
  const written = shown(path, value);
  // A reference to a file names it, and no more.
  if (typeof written !== "string") return written;
  return isHidden(path) ? star(written) : hideSecrets(written);
}

const asItIs: Shown = (_path, value) => value;

/** Among the arguments of a program, what follows `--api-key` is one. */
function maskEntry(entry: unknown, before: unknown, shown: Shown, path: Path): unknown {
  const isValue = typeof before === "string" && /^--?[^=]+$/.test(before) && namesSecret(before);
  if (!isValue || typeof entry !== "string") return maskSecrets(entry, shown, path);
  const written = shown(path, entry);
  return typeof written === "string" ? star(written) : written;
}
