/** Splits the bytes of server-sent events into the data of whole events; a character cut by a packet's border survives. */
import { GatewayError } from "../../core/errors.ts";
import { createGathering } from "../gathering.ts";
import type { Scrub } from "./refusal.ts";
import { decodeUtf8, withoutMark } from "./utf8.ts";

export interface EventReader {
  /** The data of each event that these bytes complete. */
  read(buffers: readonly Buffer[]): readonly string[];
  /** What an upstream leaves when it forgets the last blank line. */
  end(): readonly string[];
}

const newline = 0x0a;
/** What a line takes in memory beside its characters. */
const lineSize = 64;

/** `maxEventBytes` bounds what is kept of an event that does not end. */
export function createEventReader(maxEventBytes: number, scrub?: Scrub): EventReader {
  /** Bytes after the last line break: decoded only when their line is whole. */
  const tail = createGathering();
  /** The data lines of the event that is not yet whole. */
  let pending: string | undefined;
  /** What it holds in memory: a line holds on to the text that it was cut out of, so those beside the data count too. */
  let pendingSize = 0;
  let hasBegun = false;

  function toText(bytes: Buffer): string {
    const text = decodeUtf8(bytes, scrub);
    return hasBegun ? text : withoutMark(text);
  }

  function readLines(text: string, events: string[]): void {
    let from = 0;
    while (from < text.length) {
      let to = text.indexOf("\n", from);
      if (to === -1) to = text.length;
      const end = to > from && text.charCodeAt(to - 1) === 0x0d ? to - 1 : to;
      if (end === from) dispatch(events);
      else if (text.startsWith("data:", from)) {
        const line = text.slice(text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5, end);
        pending = pending === undefined ? line : `${pending}\n${line}`;
      } else if (text.startsWith('{"', from) && text.charCodeAt(end - 1) === 0x7d) {
        // No field is an object: some servers write bare JSON, of an error or of a chat answer that they have whole.
        dispatch(events);
        events.push(text.slice(from, end));
      }
      if (pending !== undefined) pendingSize += end - from + lineSize;
      from = to + 1;
    }
  }

  function dispatch(events: string[]): void {
    // By the standard an event without data is none; some servers keep a connection awake with them.
    if (pending !== undefined && pending !== "") events.push(pending);
    pending = undefined;
    pendingSize = 0;
  }

  return {
    read(buffers) {
      const events: string[] = [];
      for (const buffer of buffers) {
        const cut = buffer.lastIndexOf(newline) + 1;
        if (cut > 0) {
          readLines(toText(tail.take(buffer.subarray(0, cut))), events);
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
