/** Reads a value by its form: fills in defaults, resolves references, makes paths absolute, and notes every problem. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import {
  type Anything,
  type Choice,
  type Form,
  type Keys,
  type Kinds,
  type Names,
  type Section,
  type Text,
  toKindSection,
} from "./form.ts";
import { hidePassword } from "./mask.ts";
import { nearest } from "./nearest.ts";
import { codeOf, formatPath, isObject, type Path, problem, type Problem } from "./problem.ts";

export interface Reading {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Paths are relative to it. */
  readonly folder: string;
  readonly problems: Problem[];
  /** What is written where a reference stands, by the place. */
  readonly written: Map<string, unknown>;
}

/** Stands where something is wrong that was told: it is neither missing nor to be judged again. */
export const wrong = Symbol("wrong");

export function readValue(form: Form, value: unknown, path: Path, reading: Reading): unknown {
  if (value === undefined) {
    if (form.type === "section") return readSection(form, {}, path, reading);
    return "default" in form && form.default !== undefined ? readValue(form, form.default, path, reading) : undefined;
  }
  switch (form.type) {
    case "text":
      return readText(form, value, path, reading);
    case "choice":
      return readChoice(form, value, path, reading);
    case "integer": {
      const isRight = Number.isInteger(value) && Number(value) >= form.minimum && Number(value) <= form.maximum;
      return isRight ? value : refuse(form, value, path, reading);
    }
    case "flag":
      return typeof value === "boolean" ? value : refuse(form, value, path, reading);
    case "list":
      if (!Array.isArray(value) || (form.isFilled && value.length === 0)) return refuse(form, value, path, reading);
      return value.map((entry, index) => readValue(form.each, entry, [...path, index], reading));
    case "names":
      return isObject(value) ? readNames(form, value, path, reading) : refuse(form, value, path, reading);
    case "section":
      return isObject(value) ? readSection(form, value, path, reading) : refuse(form, value, path, reading);
    case "kinds":
      return readKind(form, value, path, reading);
    case "anything":
      return readAnything(form, value, path, reading);
  }
}

/** Notes that a value is none of what its place allows. */
export function refuse(form: Form, value: unknown, path: Path, reading: Reading, allowed = describe(form)) {
  return fail(path, `found ${describeFound(form, value)}; allowed: ${allowed}`, reading);
}

function fail(path: Path, message: string, { problems }: Reading): typeof wrong {
  problems.push(problem(path, message));
  return wrong;
}

function readText(form: Text, value: unknown, path: Path, reading: Reading): string | typeof wrong {
  if (form.isSecret && isReference(value)) {
    const secret = readFile(value, path, reading);
    return typeof secret === "string" ? judge(form, secret, value, path, reading) : secret;
  }
  if (typeof value !== "string") return refuse(form, value, path, reading);
  const text = expand(value, path, reading);
  if (typeof text !== "string") return text;
  const { pathBehind = "" } = form;
  const isPath = form.pathBehind !== undefined && text.startsWith(pathBehind) && text.length > pathBehind.length;
  const full = isPath ? pathBehind + resolve(reading.folder, text.slice(pathBehind.length)) : text;
  return judge(form, full, value, path, reading);
}

function judge(form: Text, text: string, written: unknown, path: Path, reading: Reading): string | typeof wrong {
  const fault = form.judge?.(text);
  return fault === undefined ? text : fail(path, `found ${describeFound(form, written)}; ${fault}`, reading);
}

function readChoice(form: Choice, value: unknown, path: Path, reading: Reading): unknown {
  const word = typeof value === "string" ? expand(value, path, reading) : value;
  if (word === wrong || (typeof word === "string" && form.choices.includes(word))) return word;
  return refuse(form, value, path, reading);
}

function readNames(form: Names, value: Readonly<Record<string, unknown>>, path: Path, reading: Reading): unknown {
  const entries = Object.entries(value).map(([name, entry]) => {
    const fault = form.judgeName?.(name);
    if (fault !== undefined) return [name, fail([...path, name], fault, reading)];
    return [name, readValue(form.each, entry, [...path, name], reading)];
  });
  return Object.fromEntries(entries);
}

function readSection({ keys }: Section, value: Readonly<Record<string, unknown>>, path: Path, reading: Reading) {
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(keys, key)) fail([...path, key], describeUnknown(key, keys, path), reading);
  }
  const complete = Object.entries(keys).map(([key, form]) => {
    const given = Object.hasOwn(value, key) ? value[key] : undefined;
    const place = [...path, key];
    if (given !== undefined || form.isRequired !== true) return [key, readValue(form, given, place, reading)];
    return [key, fail(place, `missing; required: ${describe(form)}`, reading)];
  });
  return Object.fromEntries(complete);
}

function describeUnknown(key: string, keys: Keys, path: Path): string {
  const known = Object.keys(keys);
  const meant = nearest(key, known);
  const question = meant === undefined ? "" : `did you mean '${meant}'? `;
  return `unknown key; ${question}Known in ${formatPath(path)}: ${known.join(", ")}`;
}

function readKind(form: Kinds, value: unknown, path: Path, reading: Reading): unknown {
  const place = [...path, "type"];
  const types = Object.keys(form.kinds);
  const allowed = types.map((each) => `"${each}"`).join(", ");
  if (!isObject(value)) return refuse(form, value, path, reading);
  if (value["type"] === undefined) return fail(place, `missing; required: ${allowed}`, reading);
  const type = typeof value["type"] === "string" ? expand(value["type"], place, reading) : value["type"];
  if (type === wrong) return wrong;
  const section = toKindSection(form, type);
  if (section !== undefined) return readSection(section, { ...value, type }, path, reading);
  const meant = typeof type === "string" ? nearest(type, types) : undefined;
  const remedy = meant === undefined ? namesNoServer : `did you mean '${meant}'?`;
  return refuse(form, value["type"], place, reading, `${allowed}; ${remedy}`);
}

/** Many write the name of their server. */
const namesNoServer = 'a server such as Ollama, vLLM or OpenRouter is reached with "openai" and its `base_url`';

function readAnything(form: Anything, value: unknown, path: Path, reading: Reading): unknown {
  if (typeof value === "string") return expand(value, path, reading);
  if (Array.isArray(value)) return value.map((entry, index) => readAnything(form, entry, [...path, index], reading));
  if (!isObject(value)) return value;
  if (form.isSecret && isReference(value) && Object.keys(value).length === 1) return readFile(value, path, reading);
  const entries = Object.entries(value).map(([key, entry]) => [
    key,
    readAnything(form, entry, [...path, key], reading),
  ]);
  return Object.fromEntries(entries);
}

/** Puts the environment's values into a text. */
function expand(text: string, path: Path, reading: Reading): string | typeof wrong {
  if (!text.includes("${")) return text;
  const { env, problems, written } = reading;
  const before = problems.length;
  const expanded = text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (reference: string, name: string | undefined) => {
    if (name === undefined) return "${";
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (!/^[A-Za-z_]\w*$/.test(name) || !reference.endsWith("}")) {
      fail(path, "is no reference to the environment; write ${NAME}, or $${ for ${ itself", reading);
    } else if (value === undefined) {
      const remedy = "set it in the gateway's environment";
      fail(path, `refers to the environment variable ${name}, which is not set; ${remedy}`, reading);
    }
    return value ?? "";
  });
  written.set(formatPath(path), text);
  return problems.length === before ? expanded : wrong;
}

interface FileReference {
  readonly file: unknown;
}

const isReference = (value: unknown): value is FileReference => isObject(value) && Object.hasOwn(value, "file");

function readFile(reference: FileReference, path: Path, reading: Reading): string | typeof wrong {
  const [other] = Object.keys(reference).filter((key) => key !== "file");
  if (other !== undefined) return fail([...path, other], "unknown key; a reference has only the key 'file'", reading);
  const place = [...path, "file"];
  if (typeof reference.file !== "string" || reference.file === "") {
    return fail(place, "is not the path of a file", reading);
  }
  const name = expand(reference.file, place, reading);
  if (typeof name !== "string") return name;
  const file = resolve(reading.folder, name);
  reading.written.set(formatPath(path), reference);
  try {
    // Editors and `echo` add a newline, which is not part of the secret.
    const secret = readFileSync(file, "utf8").trim();
    return secret || fail(path, `refers to the file ${file}, which is empty; write the secret into it`, reading);
  } catch (thrown) {
    const remedy = "create it, or let the gateway's user read it";
    return fail(path, `refers to the file ${file}, which cannot be read (${codeOf(thrown)}); ${remedy}`, reading);
  }
}

function describe(form: Form): string {
  switch (form.type) {
    case "text":
      return "a string";
    case "choice":
      return form.choices.map((each) => `"${each}"`).join(", ");
    case "integer":
      return form.allowed ?? `an integer from ${form.minimum} to ${form.maximum}`;
    case "flag":
      return "true or false";
    case "list":
      return form.isFilled ? "a list that is not empty" : "a list";
    case "kinds":
      return "an object with a 'type'";
    case "names":
    case "section":
      return "an object";
    case "anything":
      return "anything";
  }
}

/** What was found, as a message may show it: of a secret, or where one may have been meant, only its type. */
function describeFound(form: Form, value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  if (isObject(value)) return "an object";
  if (value === "") return "an empty string";
  if (isNearSecret(form)) return `a ${typeof value}`;
  if (typeof value !== "string") return String(value);
  const shown = hidePassword(value);
  return `the string ${JSON.stringify(shown.length > maxShown ? `${shown.slice(0, maxShown)}…` : shown)}`;
}

const maxShown = 80;

/** Whoever forgets the object around a secret writes the secret in its place. */
function isNearSecret(form: Form): boolean {
  const isSecret = (each: Form): boolean => "isSecret" in each && each.isSecret === true;
  if (form.type === "section") return Object.values(form.keys).some(isSecret);
  return form.type === "list" || form.type === "names" ? isNearSecret(form.each) : isSecret(form);
}
