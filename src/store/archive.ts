/** The lines of an archive, each checked down to its fields before anything of it is stored. */
import { closeSync, openSync, readSync } from "node:fs";
import { GatewayError } from "../core/errors.ts";
import type { Item } from "../core/item.ts";
import type { Metadata } from "../core/store.ts";
import type { Answer } from "../core/turn.ts";
import type { Kind } from "./rows.ts";

/** The engine before this one wrote version 1. */
export const archiveVersion = 2;

type Check<Value> = (value: unknown) => value is Value;

const checks = <Value>(isRight: (value: unknown) => boolean): Check<Value> => isRight as Check<Value>;
const matches = <Text extends string>(pattern: RegExp) =>
  checks<Text>((value) => typeof value === "string" && pattern.test(value));
const optional = <Value>(check: Check<Value>) =>
  checks<Value | undefined>((value) => value === undefined || check(value));
const listOf = <Value>(check: Check<Value>) =>
  checks<readonly Value[]>((value) => Array.isArray(value) && value.every(check));
const isObject = checks<object>((value) => typeof value === "object" && value !== null && !Array.isArray(value));
const isText = matches(/^/);
const isFlag = checks<boolean>((value) => typeof value === "boolean");
const isKey = matches(/^[0-9a-f]{25}$/);
const isSecrets = listOf(matches(/^[0-9a-f]{64}$/));
const isDate = checks<string>((value) => isText(value) && !Number.isNaN(Date.parse(value)));
const isMetadata = checks<Metadata>((value) => isObject(value) && Object.values(value).every(isText));
/** Where one was deleted a null stands. */
const isItem = checks<Item | null>((value) => value === null || (isObject(value) && "type" in value));

const forms = {
  /** Without the keys no hint is recognised again, and nothing opens that clients carry sealed. The store's own come first. */
  portico: {
    version: checks<number>((version) => typeof version === "number"),
    hintKeys: isSecrets,
    sealKeys: isSecrets,
  },
  /** Its turns follow it, each after the one that it follows. */
  session: {
    id: matches(/^conv_[0-9a-f]{48}$/),
    owner: matches(/./s),
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
    question: optional(isText),
    digest: optional(isText),
    createdAt: isDate,
    model: isText,
    input: listOf(isItem),
    answer: listOf(isItem),
    /** What was deleted, and holds the tree together, has nothing to tell. */
    told: optional(checks<Omit<Answer, "items">>(isObject)),
    echo: optional(isText),
    instructions: optional(isText),
    tools: optional(isFlag),
    person: optional(matches(/^[0-9a-f]{13}$/)),
  },
  end: {},
};

type Forms = typeof forms;
type Fields<Form> = { readonly [Name in keyof Form]: Form[Name] extends Check<infer Value> ? Value : never };
export type LineOf<Type extends keyof Forms> = { readonly type: Type } & Fields<Forms[Type]>;
export type Line = { [Type in keyof Forms]: LineOf<Type> }[keyof Forms];

/** Throws with the number of the line that is wrong, and its field. */
export function* readArchive(path: string): Generator<Line> {
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
    yield line;
  }
  if (last === undefined) throw refuse("The archive is empty.");
  if (last !== "end") throw refuse("The archive was cut off: its last line, which marks its end, is missing.");
}

function readLine(number: number, text: string): Line {
  const line = parse(number, text);
  if (!isObject(line) || !("type" in line) || typeof line.type !== "string")
    throw wrongLine(number, "is not an object with a 'type'");
  if (!isType(line.type)) throw wrongLine(number, `has the unknown type ${JSON.stringify(line.type)}`);
  const fields = line as Readonly<Record<string, unknown>>;
  const { version } = fields;
  if (line.type === "portico" && version !== archiveVersion)
    throw wrongLine(number, `has version ${String(version)}, but this release reads version ${archiveVersion}`);
  for (const [name, isRight] of Object.entries<Check<unknown>>(forms[line.type]))
    if (!isRight(fields[name])) throw wrongLine(number, `has an invalid field: '${name}'`);
  return line as Line;
}

const isType = (type: string): type is Line["type"] => Object.hasOwn(forms, type);

function parse(number: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrongLine(number, "is not JSON; it may have been cut off, or is compressed");
  }
}

function wrongLine(number: number, what: string): GatewayError {
  return refuse(`Line ${number} of the archive ${what}.`);
}

export function refuse(what: string): GatewayError {
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
