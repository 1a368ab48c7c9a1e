/** Where a value stands in the file, how problems name that place, and which places hold secrets. */

export type Path = readonly (string | number)[];

/** `gateway.http.tokens[0].name`; a key that is no plain word stands in brackets. */
export function formatPath(path: Path): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (!/^[\w$-]+$/.test(key)) text += `[${JSON.stringify(key)}]`;
    else text += text === "" ? key : `.${key}`;
  }
  return text === "" ? "(the file)" : text;
}

/** Tokens, keys and passwords by their names, and every header or variable that an adapter passes on. */
export function isSecret(path: Path): boolean {
  if (path.at(-2) === "headers" || path.at(-2) === "set_env") return true;
  return namesSecret(path.at(-1));
}

/** The same, and what an adapter's options hold below such a name: their form is not ours to know. */
export function isHidden(path: Path): boolean {
  return isSecret(path) || (path[1] === "adapters" && path.slice(3).some(namesSecret));
}

/** `api_key`, `apiKey`, `API-KEY` and `accessKeyId` alike. */
export function namesSecret(key: string | number | undefined): boolean {
  if (typeof key !== "string") return false;
  const words = key
    .replaceAll(/([a-z\d])(?=[A-Z])/g, "$1_")
    .toLowerCase()
    .split(/[^a-z\d]+/);
  return words.some((word) => secretWord.test(word));
}

const secretWord = /^(api)?(token|key|secret|pass|password|passwd|passphrase|credential|authorization)s?$/;

/** The value at a path, or nothing. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string | number, unknown>>)[key];
  }
  return value;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
