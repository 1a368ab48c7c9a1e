/** Splits bytes into the data of server-sent events; a character cut at a packet boundary survives. */
import { GatewayError } from "../../core/errors.ts";
import { createGathering } from "../gathering.ts";
import type { Scrub } from "./refusal.ts";
import { decodeUtf8, withoutMark } from "./utf8.ts";

export interface EventReader {
  /** The data of each event that these bytes complete. */
  read(buffers: readonly Buffer[]): readonly string[];
  /** The last event, if the upstream forgot its blank line. */
  end(): readonly string[];
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
/** The memory a line takes beyond its characters. */
const lineSize = 64;

/** `maxEventBytes` limits what is kept of an unfinished event. */
export function createEventReader(maxEventBytes: number, scrub?: Scrub): EventReader {
  /** Bytes after the last line break, decoded once their line is complete. */
  const tail = createGathering();
  /** The data lines of the unfinished event. */
  let pending: string | undefined;
  /** Its size in memory: a line keeps the text it was sliced from alive, so lines other than data count too. */
  let pendingSize = 0;
  let hasBegun = false;
  /** The byte at the end of each line, as the first one shows: by the standard, a lone carriage return ends one too. */
  let lineEnd: number | undefined;
  let hasReturn = false;

  /** Undefined while it is unknown: the other half of a line break may be in the next bytes. */
  function findLineEnd(bytes: Buffer): number | undefined {
    if (bytes.includes(lineFeed)) return lineFeed;
    if (hasReturn) return carriageReturn;
    const place = bytes.indexOf(carriageReturn);
    hasReturn = place !== -1;
    return hasReturn && place < bytes.length - 1 ? carriageReturn : undefined;
  }

  function toText(bytes: Buffer): string {
    const text = decodeUtf8(bytes, scrub);
    return hasBegun ? text : withoutMark(text);
  }

  function readLines(text: string, events: string[]): void {
    const lineBreak = lineEnd === carriageReturn ? "\r" : "\n";
    let from = 0;
    while (from < text.length) {
      let to = text.indexOf(lineBreak, from);
      if (to === -1) to = text.length;
      const end = to > from && text.charCodeAt(to - 1) === carriageReturn ? to - 1 : to;
      if (end === from) dispatch(events);
      else if (text.startsWith("data:", from)) {
        const line = text.slice(text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5, end);
        pending = pending === undefined ? line : `${pending}\n${line}`;
      } else if (isBare(text, from, end)) {
        dispatch(events);
        events.push(text.slice(text.indexOf("{", from), end));
      }
      if (pending !== undefined) pendingSize += end - from + lineSize;
      from = to + 1;
    }
  }

  function dispatch(events: string[]): void {
    // By the standard, an event without data is none; some servers send them as keep-alives.
    if (pending !== undefined && pending !== "") events.push(pending);
    pending = undefined;
    pendingSize = 0;
  }

  return {
    read(buffers) {
      const events: string[] = [];
      for (const buffer of buffers) {
        lineEnd ??= findLineEnd(buffer);
        const cut = lineEnd === undefined ? 0 : buffer.lastIndexOf(lineEnd) + 1;
        if (cut > 0) {
          tail.add(buffer.subarray(0, cut));
          readLines(toText(tail.take()), events);
          hasBegun = true;
        }
        if (cut < buffer.length) tail.add(buffer.subarray(cut));
      }
      if (tail.size() + pendingSize > maxEventBytes) {
        throw new GatewayError(
          "adapter_protocol",
          `The upstream sent an event of more than ${maxEventBytes} bytes without an end.`,
        );
      }
      return events;
    },
    end() {
      const events: string[] = [];
      readLines(toText(tail.take()), events);
      dispatch(events);
      return events;
    },
  };
}

/**
 * Some servers write bare JSON, for an error or for a complete chat answer, or name an error's field after it. No field
 * of the standard looks like either.
 */
function isBare(text: string, from: number, end: number): boolean {
  return text.charCodeAt(end - 1) === 0x7d && (text.startsWith('{"', from) || text.startsWith('error: {"', from));
}
