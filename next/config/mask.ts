/** Shows a configuration without its secrets: the forms say which these are, and references stay as they are written. */
import { type Form, toKindSection } from "./form.ts";
import { formatPath, isObject, type Path } from "./problem.ts";

export type Written = ReadonlyMap<string, unknown>;

/** `found` is told of each secret that stands there in clear. */
export function maskSecrets(
  form: Form,
  value: unknown,
  written: Written,
  path: Path = [],
  found: (path: Path) => void = () => {},
): unknown {
  const inner = formsWithin(form, value);
  const shown = written.get(formatPath(path)) ?? value;
  if (typeof shown === "string") {
    const masked = maskText(form, shown);
    if (masked !== shown && form.type === "text") found(path);
    return masked;
  }
  if (shown !== value || inner === undefined) return shown;
  const mask = (key: string | number, entry: unknown): unknown => {
    const own = inner(String(key));
    return own === undefined ? entry : maskSecrets(own, entry, written, [...path, key], found);
  };
  if (Array.isArray(value)) return value.map((entry, index) => mask(index, entry));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, mask(key, entry)]));
}

/** The forms of what a value holds, by their keys. */
function formsWithin(form: Form, value: unknown): ((key: string) => Form | undefined) | undefined {
  switch (form.type) {
    case "section":
      return (key) => (Object.hasOwn(form.keys, key) ? form.keys[key] : undefined);
    case "kinds": {
      const section = toKindSection(form, isObject(value) ? value["type"] : undefined);
      return section && formsWithin(section, value);
    }
    case "list":
    case "names":
      return () => form.each;
    case "anything":
      return () => form;
    default:
      return undefined;
  }
}

/** References stay. */
function maskText(form: Form, text: string): string {
  if ("isSecret" in form && form.isSecret) {
    const parts = text.split(/((?<!\$)\$\{[A-Za-z_]\w*\})/);
    return parts.map((part, index) => (index % 2 === 1 || part === "" ? part : "***")).join("");
  }
  return form.type === "text" && form.hasPassword ? hidePassword(text) : text;
}

/** Whoever is named in a URL. */
export function hidePassword(text: string): string {
  return text.replaceAll(/:\/\/[^/?#\s@]*@/g, "://***@");
}
