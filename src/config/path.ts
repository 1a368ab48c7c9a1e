/** Where a value is in the file, how problems name that place, and which places hold secrets. */

export type Path = readonly (string | number)[];

/** `gateway.http.tokens[0].name`; a key that is not a plain word is in brackets. */
export function formatPath(path: Path): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (!/^[\w$-]+$/.test(key)) text += `[${JSON.stringify(key)}]`;
    else text += text === "" ? key : `.${key}`;
  }
  return text === "" ? "(the file)" : text;
}

/** Tokens, keys and passwords, by name; and every header or variable that an adapter passes on. */
export function isSecret(path: Path): boolean {
  if (isModel(path)) return false;
  if (path.at(-2) === "headers" || path.at(-2) === "set_env") return true;
  return namesSecret(path.at(-1));
}

/** The same, and options that an adapter passes on unread, unless their names say that they are harmless. */
export function isHidden(path: Path): boolean {
  if (isModel(path)) return false;
  if (isSecret(path)) return true;
  const [, section, , key, ...within] = path;
  if (section !== "adapters") return false;
  return path.slice(3).some(namesSecret) || (key === "options" && !namesHarmless(within));
}

/** A model's name is no secret, whatever it looks like and whatever callers call it. */
export function isModel([, section, name, key, within]: Path): boolean {
  if (section === "http") return name === "tokens" && within === "models";
  return section === "adapters" && (key === "model" || key === "models");
}

/** Whether the last name of a path is that of a place or a choice. */
function namesHarmless(path: Path): boolean {
  const name = path.findLast((key) => typeof key === "string") ?? "";
  return wordsOf(String(name)).some((word) => harmlessWord.test(word));
}

const harmlessWord =
  /^(url|uri|host|hostname|endpoint|name|region|location|zone|version|model|deployment|project|organization|provider|type|mode|format|language|level|effort|tier)s?$/;

/** `api_key`, `apiKey`, `API-KEY` and `accessKeyId` alike. `max_tokens` is a count, not a secret. */
export function namesSecret(key: string | number | undefined): boolean {
  if (typeof key !== "string") return false;
  const words = wordsOf(key);
  const isCount = words.includes("max");
  return words.some((word) => secretWord.test(word) && !(isCount && word === "tokens"));
}

const secretWord =
  /^(api|auth|access|secret|private|client)?(token|key|secret|pass|password|passwd|pwd|passphrase|cred|credential|authorization|bearer|jwt|pat|sig|signature|cookie)s?$/;

function wordsOf(key: string): readonly string[] {
  return key
    .replaceAll(/([a-z\d])(?=[A-Z])/g, "$1_")
    .toLowerCase()
    .split(/[^a-z\d]+/);
}

/** The value at a path, or nothing. */
export function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string | number, unknown>>)[key];
  }
  return value;
}

/** Every value that is neither a list nor an object, with its path and, in a list, the value before it. */
export function* leavesOf(value: unknown, path: Path = [], before?: unknown): Generator<Leaf, void, void> {
  if (typeof value !== "object" || value === null) return yield [path, value, before];
  for (const [key, entry] of Object.entries(value)) {
    if (Array.isArray(value)) yield* leavesOf(entry, [...path, Number(key)], value[Number(key) - 1]);
    else yield* leavesOf(entry, [...path, key]);
  }
}

export type Leaf = readonly [path: Path, value: unknown, before: unknown];

/** The same with `more` in the object at a path, which may be absent; what is no object on the way stays as it is. */
export function mergeAt(root: unknown, [key, ...rest]: readonly string[], more: object): unknown {
  if (!isObject(root)) return root;
  if (key === undefined) return { ...root, ...more };
  const { [key]: inner = {} } = root;
  return { ...root, [key]: mergeAt(inner, rest, more) };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
