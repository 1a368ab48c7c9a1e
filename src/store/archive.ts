/** The lines of an archive, each checked down to its fields before anything of it is stored. */
import { closeSync, openSync, readSync } from "node:fs";
import { GatewayError } from "../core/errors.ts";
import type { Metadata } from "../core/store.ts";
import { isItem, isTold } from "./archive-items.ts";
import {
  type Checked,
  checks,
  type Fault,
  isAsDeepAs,
  isFlag,
  isObject,
  isText,
  listOf,
  matches,
  missing,
  optional,
  shaped,
} from "./checks.ts";
import type { Kind } from "./rows.ts";

/** The engine before this one wrote version 1. */
export const archiveVersion = 2;

/** A request has at most 64 levels, and its items at most twice as many. Far more would overflow the stack. */
const maxLevels = 500;
/** Each key is tried for each hint. */
const maxKeys = 1_000;
/** As over HTTP. */
const maxMetadata = { pairs: 16, name: 64, value: 512 };

const isKey = matches<string>(/^[0-9a-f]{25}$/);
const isMark = matches<string>(/^[\w-]{1,64}$/);
const isSecrets = checks<readonly string[]>(
  (value) => listOf(matches(/^[0-9a-f]{64}$/))(value) === undefined && (value as readonly string[]).length <= maxKeys,
);
/** Exactly as an export writes it: a date in another form might change when it is written again. */
const isDate = checks<string>((value) => {
  if (typeof value !== "string" || !/^\d{4}-/.test(value)) return false;
  const at = Date.parse(value);
  return !Number.isNaN(at) && new Date(at).toISOString() === value;
});
const isMetadata = checks<Metadata>((value) => {
  if (!isObject(value)) return false;
  const pairs = Object.entries(value);
  const fits = ([name, text]: readonly [string, unknown]) =>
    name.length <= maxMetadata.name && typeof text === "string" && text.length <= maxMetadata.value;
  return pairs.length <= maxMetadata.pairs && pairs.every(fits);
});
/** A list of two objects, as JSON. Only the wire that wrote them knows their meaning. */
const isEcho = checks<string>((value) => {
  const echo = typeof value === "string" ? parse(value) : undefined;
  return Array.isArray(echo) && echo.length === 2 && echo.every(isObject) && isAsDeepAs(maxLevels, echo);
});

const forms = {
  /** Without the keys no hint is recognised again, and nothing opens that clients carry sealed. The store's own come first. */
  portico: {
    version: checks<number>((version) => version === archiveVersion),
    hintKeys: isSecrets,
    sealKeys: isSecrets,
  },
  /** Its turns follow it, each after the one that it follows. */
  session: {
    id: matches<string>(/^conv_[0-9a-f]{48}$/),
    owner: matches<string>(/./s),
    kind: matches<Kind>(/^(hidden|hinted|named)$/),
    shows: isFlag,
    tip: optional(isKey),
    metadata: isMetadata,
    createdAt: isDate,
    usedAt: isDate,
  },
  turn: {
    id: isKey,
    parent: optional(isKey),
    remembers: isFlag,
    question: optional(isMark),
    digest: optional(isMark),
    createdAt: isDate,
    model: isText,
    input: listOf(isItem),
    answer: listOf(isItem),
    /** What was deleted, and holds the tree together, has nothing to tell. */
    told: optional(isTold),
    echo: optional(isEcho),
    /** The first two only of a root. The person is its user's keyed number, if something else named the session. */
    instructions: optional(isMark),
    tools: optional(isFlag),
    person: optional(matches<string>(/^[0-9a-f]{13}$/)),
  },
  end: {},
};

type Forms = typeof forms;
type Fields<Form> = { readonly [Name in keyof Form]: Checked<Form[Name]> };
export type LineOf<Type extends keyof Forms> = { readonly type: Type } & Fields<Forms[Type]>;
export type Line = { [Type in keyof Forms]: LineOf<Type> }[keyof Forms];

/** Each line with its number. Throws with the number of the line that is wrong, and its field. */
export function* readArchive(path: string): Generator<readonly [number: number, line: Line]> {
  let number = 0;
  let last: Line["type"] | undefined;
  for (const text of readLines(path)) {
    number += 1;
    if (text === "") continue;
    if (last === "end") throw wrongLine(number, "comes after the end of the archive");
    const line = readLine(number, text);
    if ((last === undefined) !== (line.type === "portico"))
      throw wrongLine(number, 'is out of place: the first line, and only that, has the type "portico"');
    last = line.type;
    yield [number, line];
  }
  if (last === undefined) throw refuse("The archive is empty.");
  if (last !== "end") throw refuse("The archive was cut off: its last line, which marks its end, is missing.");
}

function readLine(number: number, text: string): Line {
  const line = parse(text);
  if (line === undefined) throw wrongLine(number, "is not JSON; it may have been cut off, or is compressed");
  if (!isObject(line) || typeof line["type"] !== "string") throw wrongLine(number, "is not an object with a 'type'");
  if (!isAsDeepAs(maxLevels, line)) throw wrongLine(number, `is nested deeper than ${maxLevels} levels`);
  const { type, version } = line;
  if (!isType(type)) throw wrongLine(number, `has the unknown type ${JSON.stringify(type)}`);
  if (type === "portico" && version !== archiveVersion)
    throw wrongLine(number, `has version ${JSON.stringify(version)}, but this release reads version ${archiveVersion}`);
  const fault = lineChecks[type](line) ?? (type === "turn" ? findGap(line as unknown as LineOf<"turn">) : undefined);
  if (fault !== undefined) throw wrongField(number, fault);
  return line as unknown as Line;
}

const lineChecks = Object.fromEntries(
  Object.entries<object>(forms).map(([type, form]) => [type, shaped({ ...form, type: isText })]),
) as Record<Line["type"], (line: unknown) => Fault | undefined>;

/** Without `told` all other parts are absent. `question` and `digest` come together or not at all. */
function findGap({ told, input, answer, question, digest, echo }: LineOf<"turn">): Fault | undefined {
  const isEmpty = input.length === 0 && answer.length === 0 && digest === undefined && echo === undefined;
  if (told === undefined && !isEmpty) return { ...missing, path: ".told" };
  if (question === undefined && digest !== undefined) return { ...missing, path: ".question" };
  return digest === undefined && question !== undefined ? { ...missing, path: ".digest" } : undefined;
}

const isType = (type: string): type is Line["type"] => Object.hasOwn(forms, type);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const kinds = { invalid: "has an invalid field:", missing: "lacks the field", unknown: "has an unknown field:" };

export function wrongField(number: number, { path, kind }: Fault, why = ""): GatewayError {
  return wrongLine(number, `${kinds[kind]} '${path.slice(1)}'${why}`);
}

export function wrongLine(number: number, what: string): GatewayError {
  return refuse(`Line ${number} of the archive ${what}.`);
}

function refuse(what: string): GatewayError {
  return new GatewayError("invalid_value", `${what} Nothing was imported.`);
}

const pieceBytes = 256 * 1024;

/** With only one in memory at a time. `node:readline` also ends lines where JSON does not. */
function* readLines(path: string): Generator<string> {
  const file = openSync(path, "r");
  const buffer = Buffer.alloc(pieceBytes);
  let pieces: Buffer[] = [];
  try {
    for (let size = readSync(file, buffer); size > 0; size = readSync(file, buffer)) {
      const piece = Buffer.from(buffer.subarray(0, size));
      let start = 0;
      for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", start)) {
        yield Buffer.concat([...pieces, piece.subarray(start, end)]).toString();
        pieces = [];
        start = end + 1;
      }
      pieces.push(piece.subarray(start));
    }
    yield Buffer.concat(pieces).toString();
  } finally {
    closeSync(file);
  }
}
