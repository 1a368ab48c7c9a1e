/** Reads an archive without trusting a line of it: each is checked down to its fields before anything is stored. */
import type { Validator } from "typebox/compile";
import { GatewayError } from "../core/errors.ts";
import { version } from "./archive.ts";
import { forms } from "./archive-forms.ts";

/** The lines of an archive as they are, each checked. Throws with the number of the wrong one. */
export async function* readArchive(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  let isWhole = false;
  let isFirst = true;
  for await (const { number, text } of readLines(bytes)) {
    if (isWhole) throw wrongLine(number, "comes after the end of the archive");
    const type = checkLine(number, text);
    if (isFirst !== (type === "portico"))
      throw wrongLine(number, 'is out of place: the first line, and only that, has the type "portico"');
    isFirst = false;
    isWhole = type === "end";
    yield text;
  }
  if (isFirst) throw refuse("The archive is empty.");
  if (!isWhole)
    throw refuse("The archive was cut off: its last line, which marks its end, is missing. Export it again.");
}

interface NumberedLine {
  readonly number: number;
  readonly text: string;
}

/** A turn is as long as its request and its answer, which have their own limits. */
const maxLineBytes = 128 * 1024 * 1024;
const newline = 0x0a;

/** Those that are not blank, with only one in memory at a time. */
async function* readLines(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<NumberedLine, void, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let pieces: Uint8Array[] = [];
  let size = 0;
  let number = 1;

  function add(piece: Uint8Array): void {
    size += piece.length;
    if (size > maxLineBytes) throw wrongLine(number, `is longer than ${maxLineBytes} bytes`);
    pieces.push(piece);
  }

  function take(): NumberedLine {
    try {
      return { number, text: decoder.decode(Buffer.concat(pieces, size)).trim() };
    } catch {
      throw wrongLine(number, "is not UTF-8 text; if the archive is compressed, decompress it first");
    } finally {
      pieces = [];
      size = 0;
      number += 1;
    }
  }

  for await (const chunk of bytes) {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      add(chunk.subarray(start, end));
      const line = take();
      if (line.text !== "") yield line;
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  const last = take();
  if (last.text !== "") yield last;
}

/** Its type. */
function checkLine(number: number, text: string): string {
  const line = parse(number, text);
  if (typeof line !== "object" || line === null || !("type" in line) || typeof line.type !== "string")
    throw wrongLine(number, "is not an object with a 'type'");
  const form = Object.hasOwn(forms, line.type) ? forms[line.type] : undefined;
  if (form === undefined) throw wrongLine(number, `has the unknown type ${JSON.stringify(line.type)}`);
  if (line.type === "portico" && "version" in line && line.version !== version)
    throw wrongLine(number, `has version ${String(line.version)}, but this release reads version ${version}`);
  if (!form.Check(line)) throw wrongLine(number, describeMisfit(form, line));
  return line.type;
}

function parse(number: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrongLine(number, "is not JSON; it may have been cut off");
  }
}

function describeMisfit(form: Validator, value: unknown): string {
  const errors = form.Errors(value);
  const misfit = errors.find(({ keyword }) => keyword === "anyOf") ?? errors[0];
  const path = misfit?.instancePath.slice(1).replaceAll("/", ".") ?? "";
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
