/** Reads a value by its form: fills in defaults, resolves references, makes paths absolute, and notes every problem. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { choice, type Form, type Keys } from "./form.ts";
import { codeOf, formatPath, isObject, nearest, type Path, problem, type Problem } from "./problem.ts";

export interface Found {
  /** Undefined in it where something is wrong. */
  readonly value: unknown;
  readonly problems: Problem[];
  readonly texts: readonly FoundText[];
}

/** A text that is right. */
export interface FoundText {
  readonly path: Path;
  readonly form: Form;
  readonly text: string;
  /** A reference as it is written, and of a secret nothing else. */
  readonly shown: unknown;
}

/** Stands for a secret that is in the file itself. */
export const masked = "***";

/** Whoever is named in a URL is not shown. */
export const hideUser = (text: string): string => text.replace(/:\/\/.*@/, `://${masked}@`);

/** Paths are relative to the folder. */
export function readWhole(
  form: Form,
  given: unknown,
  folder: string,
  env: Readonly<Record<string, string | undefined>>,
): Found {
  const problems: Problem[] = [];
  const texts: FoundText[] = [];
  return { value: read(form, given, []), problems, texts };

  function fail(path: Path, message: string): undefined {
    problems.push(problem(path, message));
  }

  function refuse(form: Form, value: unknown, path: Path, fault = `allowed: ${describe(form)}`): undefined {
    return fail(path, `found ${describeFound(form, value)}; ${fault}`);
  }

  function read(form: Form, value: unknown, path: Path): unknown {
    if (value === undefined) return form.default === undefined ? undefined : read(form, form.default, path);
    if (form.anyOf !== undefined) return readKind(form.anyOf, value, path);
    switch (form.type) {
      case "string":
        return readText(form, value, path);
      case "integer": {
        const { minimum = 0, maximum = Infinity } = form;
        const isRight = Number.isInteger(value) && Number(value) >= minimum && Number(value) <= maximum;
        return isRight ? value : refuse(form, value, path);
      }
      case "boolean":
        return typeof value === "boolean" ? value : refuse(form, value, path);
      case "array": {
        const { items, minItems = 0 } = form;
        if (!Array.isArray(value) || value.length < minItems) return refuse(form, value, path);
        return value.map((entry, index) => items && read(items, entry, [...path, index]));
      }
      case "object":
        if (!isObject(value)) return refuse(form, value, path);
        return form.properties ? readSection(form, form.properties, value, path) : readNames(form, value, path);
      case undefined:
        return readAnything(form, value, path);
      default:
        return isReference(value) ? readFile(form, value, path) : readText(form, value, path);
    }
  }

  function readText(form: Form, value: unknown, path: Path): string | undefined {
    if (typeof value !== "string") return refuse(form, value, path);
    const text = expand(value, path);
    if (text === undefined) return undefined;
    const { enum: words, pathBehind: start } = form;
    if (words?.includes(text) === false) return refuse(form, value, path);
    const isPath = start !== undefined && text.startsWith(start) && text.length > start.length;
    const full = isPath ? start + resolve(folder, text.slice(start.length)) : text;
    const fault = form.judge?.(text) ?? form.judge?.(full);
    if (fault !== undefined) return refuse(form, value, path, fault);
    const references = value.match(/(?<!\$)\$\{[A-Za-z_]\w*\}/g);
    const shown = form.isSecret ? (references?.join("…") ?? masked) : (references && value) || hideUser(full);
    texts.push({ path, form, text: full, shown });
    return full;
  }

  function readNames({ additionalProperties: each }: Form, value: object, path: Path): object {
    const entries = Object.entries(value).map(([name, entry]) => [name, each && read(each, entry, [...path, name])]);
    return Object.fromEntries(entries);
  }

  function readSection({ required }: Form, keys: Keys, value: Readonly<Record<string, unknown>>, path: Path) {
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(keys, key)) fail([...path, key], describeUnknown(key, Object.keys(keys), path));
    }
    const entries = Object.entries(keys).map(([key, form]) => {
      const place = [...path, key];
      const own = Object.hasOwn(value, key) ? value[key] : undefined;
      const isMissing = own === undefined && required?.includes(key);
      return [key, isMissing ? fail(place, `missing; required: ${describe(form)}`) : read(form, own, place)];
    });
    return Object.fromEntries(entries) as Readonly<Record<string, unknown>>;
  }

  /** Which section is meant, its `type` says. */
  function readKind(sections: readonly Form[], value: unknown, path: Path): unknown {
    if (!isObject(value)) return refuse({ type: "object", description: "" }, value, path);
    const types = sections.flatMap((each) => each.properties?.["type"]?.enum ?? []);
    const type = { type: choice(types, "The kind.") };
    const own = readSection({ description: "", required: ["type"] }, type, { type: value["type"] }, path);
    const meant = sections[types.indexOf(String(own["type"]))];
    return meant && read(meant, value, path);
  }

  /** What somebody else reads: its texts may be references, and so may its secrets. */
  function readAnything(form: Form, value: unknown, path: Path): unknown {
    if (typeof value === "string") return readText(form, value, path);
    if (Array.isArray(value)) return value.map((entry, index) => readAnything(form, entry, [...path, index]));
    if (!isObject(value)) return value;
    if (form.isSecret && isReference(value) && Object.keys(value).length === 1) return readFile(form, value, path);
    return readNames({ ...form, additionalProperties: form }, value, path);
  }

  /** Puts the environment's values into a text. */
  function expand(text: string, path: Path): string | undefined {
    const before = problems.length;
    const expanded = text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (reference: string, name: string | undefined) => {
      if (name === undefined) return "${";
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      if (!/^[A-Za-z_]\w*$/.test(name) || !reference.endsWith("}")) {
        fail(path, "is no reference to the environment; write ${NAME}, or $${ for ${ itself");
      } else if (value === undefined) {
        fail(path, `refers to the variable ${name}, which is not set; set it in the gateway's environment`);
      }
      // What was read from a file may end with a newline.
      return value?.trimEnd() ?? "";
    });
    return problems.length === before ? expanded : undefined;
  }

  function readFile(form: Form, reference: Reference, path: Path): string | undefined {
    const { file: given, ...others } = reference;
    const [other] = Object.keys(others);
    if (other !== undefined) return fail([...path, other], "unknown key; a reference has only the key 'file'");
    if (typeof given !== "string" || given === "") return fail([...path, "file"], "is not the path of a file");
    const name = expand(given, [...path, "file"]);
    if (name === undefined) return undefined;
    const file = resolve(folder, name);
    try {
      // Editors and `echo` add a newline, which is not part of the secret.
      const secret = readFileSync(file, "utf8").trim();
      const fault = secret === "" ? "is empty; write the secret into it" : form.judge?.(secret);
      if (fault !== undefined) return fail(path, `refers to the file ${file}; ${fault}`);
      texts.push({ path, form, text: secret, shown: reference });
      return secret;
    } catch (thrown) {
      const remedy = "create it, or let the gateway's user read it";
      return fail(path, `refers to the file ${file}, which cannot be read (${codeOf(thrown)}); ${remedy}`);
    }
  }
}

interface Reference {
  readonly file: unknown;
}

const isReference = (value: unknown): value is Reference => isObject(value) && Object.hasOwn(value, "file");

function describeUnknown(key: string, known: readonly string[], path: Path): string {
  const meant = nearest(key, known);
  const question = meant === undefined ? "" : `did you mean '${meant}'? `;
  return `unknown key; ${question}Known in ${formatPath(path)}: ${known.join(", ")}`;
}

function describe({ type, enum: words, minimum, maximum, minItems }: Form): string {
  if (words !== undefined) return words.map((word) => `"${word}"`).join(", ");
  if (type === "integer") return `an integer from ${minimum} to ${maximum}`;
  if (type === "array") return minItems === undefined ? "a list" : "a list that is not empty";
  if (type === "boolean") return "true or false";
  return type === "object" ? "an object" : "a string";
}

/** What was found, as a message may show it: of a secret, or where one may have been meant, only its type. */
function describeFound({ isSecret, properties, items, additionalProperties }: Form, value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isObject(value)) return "an object";
  if (value === "") return "an empty string";
  // Whoever forgets the object around a secret writes the secret in its place.
  const within = [...Object.values({ ...properties, ...items?.properties }), additionalProperties];
  if (isSecret || within.some((form) => form && form.isSecret)) return `a ${typeof value}`;
  return typeof value === "string" ? `the string ${JSON.stringify(hideUser(value))}` : String(value);
}

/** A value as it may be shown. */
export function show(value: unknown, shown: ReadonlyMap<string, unknown>, path: Path = []): unknown {
  const instead = shown.get(formatPath(path));
  if (instead !== undefined) return instead;
  if (Array.isArray(value)) return value.map((entry, index) => show(entry, shown, [...path, index]));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, show(entry, shown, [...path, key])]));
}
