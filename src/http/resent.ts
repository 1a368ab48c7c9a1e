/**
 * Most clients resend the whole conversation with every request, each time longer. The messages that a body has in
 * common with an earlier one, byte for byte, are not decoded, parsed and read again: only what stands around them is.
 */
import { isUtf8 } from "node:buffer";
import { randomUUID } from "node:crypto";
import { addShapes, type ListShape, toPartBytes } from "../core/json-shape.ts";
import type { Earlier } from "../core/ports.ts";
import type { Ask } from "../core/turn.ts";
import { parseObject } from "../protocols/fields.ts";
import type { Beginning, Beginnings, Sender } from "./beginnings.ts";
import { toHeldBytes } from "./held.ts";
import { checkText, decode, parseBody, parseJson, type ParseLimits } from "./parse.ts";

export interface ReadBody {
  readonly value: unknown;
  /** About how much memory the value takes. */
  readonly heldBytes: number;
  /** The first elements of the list, if they are known. */
  readonly earlier?: Earlier | undefined;
  /** Remembers what the list became, for the next request. */
  readonly keep?: ((items: Ask["items"]) => void) | undefined;
}

/** Parses a body; what is known of its beginning is not parsed again. */
export function readResent(bytes: Buffer, sender: Sender, limits: ParseLimits, beginnings: Beginnings): ReadBody {
  // One with a byte order mark has other places than its text.
  if (bytes.length < beginnings.minBytes || bytes[0] !== openBrace) return readWhole(bytes, limits);
  const { listName } = sender;
  const found = beginnings.find(sender, bytes);
  const known = found?.beginning;
  const { beginning, ...parsed } =
    (known && parseRest(bytes, known, listName, limits)) ?? parseFirst(bytes, listName, limits);
  if (beginning === undefined) return parsed;
  return { ...parsed, keep: (items) => beginnings.keep(sender, { ...beginning, items }, found) };
}

const openBrace = 0x7b;

/** Parses a body of which nothing is remembered. */
export function readWhole(bytes: Buffer, limits: ParseLimits): ReadBody {
  const text = decode(bytes);
  const { value, partBytes } = parseBody(text, limits);
  return { value, heldBytes: toHeldBytes(text, bytes.length) + partBytes };
}

interface Parsed extends Omit<ReadBody, "keep"> {
  /** What can be remembered of it. */
  readonly beginning?: Omit<Beginning, "items"> | undefined;
}

/** A body that begins like none that is known. */
function parseFirst(bytes: Buffer, listName: string, limits: ParseLimits): Parsed {
  const text = decode(bytes);
  const shape = checkText(text, limits, listName);
  const { list } = shape;
  const heldBytes = toHeldBytes(text, bytes.length) + toPartBytes(shape);
  const head = text.slice(0, list?.start);
  const divided = list && parseDivided(`${head}${divider},${text.slice(list.start)}`, listName, []);
  if (list === undefined || divided === undefined) return { value: parseJson(text), heldBytes };
  const known = text.slice(0, endOfElements(text, list));
  const isAscii = bytes.length === text.length;
  const knownBytes = bytes.subarray(0, isAscii ? known.length : Buffer.byteLength(known));
  const textBytes = isAscii ? known.length : 2 * known.length;
  // A slice of the text would keep all of it in memory.
  const ownHead = bytes.toString("utf8", 0, Buffer.byteLength(head));
  const beginning = { bytes: knownBytes, head: ownHead, elements: divided.elements, shape: list, textBytes };
  return { value: divided.value, heldBytes, beginning };
}

/** A body that begins like a known one; undefined: what follows is not JSON, or replaces the list. */
function parseRest(bytes: Buffer, known: Beginning, listName: string, limits: ParseLimits): Parsed | undefined {
  const rest = bytes.subarray(known.bytes.length);
  if (!isUtf8(rest)) return undefined;
  const { head } = known;
  const front = `${head}${divider}`;
  const restText = rest.toString();
  const text = `${front}${restText}`;
  const shape = checkText(text, limits, listName, known.shape);
  const { list } = shape;
  // Another list may follow whose name ends the same, after a quote.
  if (list?.start !== head.length) return undefined;
  const divided = parseDivided(text, listName, known.elements);
  if (divided === undefined) return undefined;
  const added = text.slice(front.length, endOfElements(text, list));
  const addedBytes = Buffer.byteLength(added);
  const beginning = {
    bytes: bytes.subarray(0, known.bytes.length + addedBytes),
    head,
    elements: divided.elements,
    shape: addShapes(known.shape, list),
    textBytes: known.textBytes + toHeldBytes(added, addedBytes),
  };
  const heldBytes = known.textBytes + toHeldBytes(restText, rest.length) + toPartBytes(shape);
  const earlier = { length: known.elements.length, items: known.items };
  return { value: divided.value, heldBytes, earlier, beginning };
}

/** Stands for the known elements. No caller can know it, so whatever is in a body cannot be taken for it. */
const mark = randomUUID();
const divider = JSON.stringify(mark);

interface Divided {
  /** The body with all elements. */
  readonly value: unknown;
  readonly elements: readonly unknown[];
}

/** Parses a text with the mark instead of its first elements; undefined if it is not JSON, or another list counts. */
function parseDivided(text: string, listName: string, known: readonly unknown[]): Divided | undefined {
  const value = parseObject(text);
  const list = value?.[listName];
  if (value === undefined || !Array.isArray(list) || list[0] !== mark) return undefined;
  const elements: readonly unknown[] = known.concat(list.slice(1));
  value[listName] = elements;
  return { value, elements };
}

/** Between elements there may be blanks, but the next body may have other ones there. */
function endOfElements(text: string, { end }: ListShape): number {
  return text.slice(0, end).trimEnd().length;
}
