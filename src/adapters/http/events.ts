/** Splits the bytes of server-sent events into the data of whole events; a character cut by a packet's border survives. */
import { GatewayError } from "../../core/errors.ts";
import { requireUtf8 } from "./utf8.ts";

export interface EventReader {
  /** The data of each event that these bytes complete. */
  read(buffers: readonly Buffer[]): readonly string[];
  /** What an upstream leaves when it forgets the last blank line. */
  end(): readonly string[];
}

const newline = 0x0a;

/** `maxEventBytes` bounds what is kept of an event that does not end. */
export function createEventReader(maxEventBytes: number): EventReader {
  /** Bytes after the last line break: decoded only when their line is whole. */
  let tail: Buffer[] = [];
  let tailBytes = 0;
  /** The data lines of the event that is not yet whole. */
  let pending: string | undefined;
  let hasBegun = false;

  /** A mark of the byte order may stand at the very beginning. */
  function toText(bytes: Buffer): string {
    requireUtf8(bytes);
    const text = bytes.toString("utf8");
    return !hasBegun && text.startsWith("\ufeff") ? text.slice(1) : text;
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
      }
      from = to + 1;
    }
  }

  function dispatch(events: string[]): void {
    // By the standard an event without data is none; some servers keep a connection awake with them.
    if (pending !== undefined && pending !== "") events.push(pending);
    pending = undefined;
  }

  function keep(rest: Buffer): void {
    if (rest.length === 0) return;
    tail.push(rest);
    tailBytes += rest.length;
  }

  return {
    read(buffers) {
      const events: string[] = [];
      for (const buffer of buffers) {
        const cut = buffer.lastIndexOf(newline) + 1;
        if (cut > 0) {
          const lines = buffer.subarray(0, cut);
          const whole = tail.length === 0 ? lines : Buffer.concat([...tail, lines]);
          tail = [];
          tailBytes = 0;
          readLines(toText(whole), events);
          hasBegun = true;
        }
        keep(buffer.subarray(cut));
      }
      if (tailBytes + (pending?.length ?? 0) > maxEventBytes) {
        throw new GatewayError(
          "adapter_protocol",
          `The upstream sent an event of more than ${maxEventBytes} bytes without an end.`,
        );
      }
      return events;
    },
    end() {
      const events: string[] = [];
      readLines(toText(Buffer.concat(tail)), events);
      dispatch(events);
      tail = [];
      return events;
    },
  };
}
