/** The lines of an archive, each checked down to its fields before anything of it is stored. */
import { closeSync, openSync, readSync } from "node:fs";
import { GatewayError } from "../core/errors.ts";
import type { Item } from "../core/item.ts";
import type { Answer } from "../core/turn.ts";
import type { Kind } from "./rows.ts";

/** The engine before this one wrote version 1. */
export const archiveVersion = 2;

export type Line = HeadLine | SessionLine | TurnLine | { readonly type: "end" };

/** Without the keys no hint is recognised again, and nothing opens that clients carry sealed. The store's own come first. */
export interface HeadLine {
  readonly type: "portico";
  readonly version: number;
  readonly hintKeys: readonly string[];
  readonly sealKeys: readonly string[];
}

/** Its turns follow it, each after the one that it follows. */
export interface SessionLine {
  readonly type: "session";
  readonly id: string;
  readonly owner: string;
  readonly kind: Kind;
  readonly shows: boolean;
  readonly tip?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly createdAt: string;
  readonly usedAt: string;
}

export interface TurnLine {
  readonly type: "turn";
  readonly id: string;
  readonly owner: string;
  readonly session: string;
  readonly parent?: string | undefined;
  readonly remembers: boolean;
  readonly question?: string | undefined;
  readonly digest?: string | undefined;
  readonly createdAt: string;
  readonly model: string;
  /** Where one was deleted a null stands. */
  readonly input: readonly (Item | null)[];
  readonly answer: readonly (Item | null)[];
  /** What was deleted, and holds the tree together, has nothing to tell. */
  readonly told?: Omit<Answer, "items"> | undefined;
  readonly echo?: string | undefined;
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const matches =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isName = matches(/./s);
const isKey = matches(/^[0-9a-f]{25}$/);
const isSession = matches(/^conv_[0-9a-f]{48}$/);
const isMark = matches(/^[A-Za-z0-9+/=_-]{1,64}$/);
const isSecret = matches(/^[0-9a-f]{64}$/);
const isDate: Check = (value) =>
  matches(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/)(value) && !Number.isNaN(Date.parse(String(value)));
const isSecrets: Check = (value) => Array.isArray(value) && value.length > 0 && value.every(isSecret);
const isItems: Check = (value) =>
  Array.isArray(value) &&
  value.every((item) => item === null || (isObject(item) && "type" in item && isText(item.type)));

const forms: Readonly<Record<Line["type"], Readonly<Record<string, Check>>>> = {
  portico: { hintKeys: isSecrets, sealKeys: isSecrets },
  session: {
    id: isSession,
    owner: isName,
    kind: matches(/^(hidden|hinted|named)$/),
    shows: isFlag,
    tip: optional(isKey),
    metadata: (value) => isObject(value) && Object.values(value).every(isText),
    createdAt: isDate,
    usedAt: isDate,
  },
  turn: {
    id: isKey,
    owner: isName,
    session: isSession,
    parent: optional(isKey),
    remembers: isFlag,
    question: optional(isMark),
    digest: optional(isMark),
    createdAt: isDate,
    model: isText,
    input: isItems,
    answer: isItems,
    told: optional(isObject),
    echo: optional(isText),
  },
  end: {},
};

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
  if (line.type === "portico" && fields["version"] !== archiveVersion)
    throw wrongLine(
      number,
      `has version ${String(fields["version"])}, but this release reads version ${archiveVersion}`,
    );
  for (const [name, isRight] of Object.entries(forms[line.type]))
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
