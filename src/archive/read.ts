/** Reads an archive back without trusting a line of it. */
import type { Validator } from "typebox/compile";
import { GatewayError } from "../core/errors.ts";
import { toAbandoned, interrupted } from "../core/frame/replay.ts";
import type { ArchiveRecord, StoredTurn, Told } from "../core/store.ts";
import { findBadShape, findMisfit } from "./fit.ts";
import { forms } from "./forms.ts";
import { version } from "./write.ts";

/** The records in an archive's bytes, each validated before it is yielded. Throws with the number of the wrong line. */
export async function* readArchive(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<ArchiveRecord, void, void> {
  let isFirst = true;
  let isWhole = false;
  for await (const { number, text } of readLines(bytes)) {
    if (isWhole) throw wrongLine(number, "comes after the end of the archive");
    const record = toRecord(number, parse(number, text));
    if (isFirst !== (record !== "end" && record.type === "store")) {
      throw wrongLine(number, 'is out of place: the first line, and only that, has the type "portico"');
    }
    isFirst = false;
    if (record === "end") isWhole = true;
    else yield record;
  }
  if (isFirst) throw refuse("The archive is empty.");
  if (!isWhole)
    throw refuse("The archive was cut off: its last line, which marks its end, is missing. Export it again.");
}

interface Line {
  readonly number: number;
  readonly text: string;
}

/** A turn is as long as its request and its answer, which have their own limits. */
const maxLineBytes = 128 * 1024 * 1024;
const newline = 0x0a;

/** The lines that are not blank, with only one in memory at a time. */
async function* readLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Line, void, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let pieces: Uint8Array[] = [];
  let size = 0;
  let number = 1;

  function add(piece: Uint8Array): void {
    size += piece.length;
    if (size > maxLineBytes) throw wrongLine(number, `is longer than ${maxLineBytes} bytes`);
    pieces.push(piece);
  }

  function* take(): Generator<Line> {
    let text: string;
    try {
      text = decoder.decode(Buffer.concat(pieces, size));
    } catch {
      throw wrongLine(number, "is not UTF-8 text; if the archive is compressed, decompress it first");
    }
    pieces = [];
    size = 0;
    if (text.trim() !== "") yield { number, text };
    number++;
  }

  for await (const chunk of bytes) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      yield* take();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  yield* take();
}

function parse(number: number, text: string): unknown {
  const badShape = findBadShape(text);
  if (badShape !== undefined) throw wrongLine(number, badShape);
  try {
    return JSON.parse(text);
  } catch {
    throw wrongLine(number, "is not JSON; it may have been cut off");
  }
}

/** A record whose dates are still text. */
type Parsed<T> = Omit<T, "createdAt" | "updatedAt" | "told"> & {
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly told?: Omit<Told, "endedAt"> & { readonly endedAt?: string };
};

function toRecord(number: number, line: unknown): ArchiveRecord | "end" {
  const { type, ...rest } = readType(number, line);
  const form = Object.hasOwn(forms, type) ? forms[type] : undefined;
  if (form === undefined) throw wrongLine(number, `has the unknown type ${JSON.stringify(type)}`);
  if (!form.Check(rest)) throw wrongLine(number, describeMisfit(form, rest));
  switch (type) {
    case "portico": {
      const { version: written, hintKey, sealKeys } = rest as StoreLine;
      if (written === version) return { type: "store", hintKey, sealKeys };
      const remedy = `this release reads version ${version}; use a newer release`;
      throw wrongLine(number, `has version ${written}, but ${remedy}`);
    }
    case "session": {
      const session = rest as Parsed<Extract<ArchiveRecord, { type: "session" }>>;
      const dates = { createdAt: new Date(session.createdAt), updatedAt: new Date(session.updatedAt) };
      return { ...session, ...dates, type: "session" };
    }
    case "turn": {
      const turn = toTurn(rest as Parsed<StoredTurn>);
      const misfit = findMisfit(turn);
      if (misfit !== undefined) throw wrongLine(number, `has an invalid field: ${misfit}`);
      return { type: "turn", turn };
    }
    default:
      return "end";
  }
}

function readType(number: number, line: unknown): { readonly type: string } {
  if (typeof line === "object" && line !== null && "type" in line && typeof line.type === "string") {
    return line as { readonly type: string };
  }
  throw wrongLine(number, "is not an object with a 'type'");
}

type StoreLine = Omit<Extract<ArchiveRecord, { type: "store" }>, "type"> & { readonly version: number };

/** Nobody works any more on a turn that was running when exported. */
function toTurn(turn: Parsed<StoredTurn>): StoredTurn {
  const createdAt = new Date(turn.createdAt);
  const { told, ...rest } = turn;
  const endedAt = told?.endedAt === undefined ? undefined : new Date(told.endedAt);
  const stored = { ...rest, createdAt, ...(told !== undefined && { told: { ...told, endedAt } }) };
  return stored.status === "running" ? toAbandoned(stored, interrupted, createdAt) : stored;
}

function describeMisfit(form: Validator, value: unknown): string {
  const errors = form.Errors(value);
  const misfit = errors.find(({ keyword }) => keyword === "anyOf") ?? errors[0];
  const path = misfit?.instancePath.slice(1).replaceAll("/", ".") ?? "";
  // Only the first errors are reported: those of the members may leave out that of the union itself.
  const isInUnion = misfit?.keyword === "anyOf" || misfit?.schemaPath.includes("/anyOf/") === true;
  const what = isInUnion ? "has no known form" : misfit?.message;
  return path === "" ? String(what) : `has an invalid field: '${path}' ${what}`;
}

function wrongLine(number: number, what: string): GatewayError {
  return refuse(`Line ${number} of the archive ${what}.`);
}

function refuse(what: string): GatewayError {
  return new GatewayError("invalid_value", `${what} Nothing was imported.`);
}
