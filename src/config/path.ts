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
  const key = path.at(-1);
  if (path.at(-2) === "headers" || path.at(-2) === "set_env") return true;
  return typeof key === "string" && /(^|_)(token|key|secret|password)$|(Token|Key|Secret|Password)$/.test(key);
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

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
