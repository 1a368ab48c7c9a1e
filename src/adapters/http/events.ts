/** Splits bytes into the data of server-sent events; a line or a character that is cut between packets survives. */
import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../core/errors.ts";
import { tooLarge } from "./failure.ts";

export interface Events {
  /** Takes the data of each event that these bytes complete. */
  read(bytes: Buffer): void;
  /** Takes the last event, if its blank line was forgotten. */
  end(): void;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

export function createEvents(take: (data: string) => void): Events {
  /** Bytes of an unfinished line. No character has a line break in it, so whole lines are decoded alone. */
  let tail: Buffer[] = [];
  /** The data lines of an unfinished event. */
  let pending: string | undefined;
  let hasBegun = false;

  function readLines(bytes: Buffer): void {
    const text = decode(bytes);
    let from = hasBegun || !text.startsWith("\ufeff") ? 0 : 1;
    hasBegun = true;
    while (from < text.length) {
      let to = text.indexOf("\n", from);
      if (to === -1) to = text.length;
      readLine(text, from, to > from && text.charCodeAt(to - 1) === carriageReturn ? to - 1 : to);
      from = to + 1;
    }
  }

  function readLine(text: string, from: number, end: number): void {
    if (end === from) return complete();
    if (text.startsWith("data:", from)) {
      const line = text.slice(text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5, end);
      pending = pending === undefined ? line : `${pending}\n${line}`;
    } else if (isBare(text, from, end)) {
      complete();
      take(text.slice(text.indexOf("{", from), end));
    }
  }

  function complete(): void {
    const data = pending;
    pending = undefined;
    // By the standard an event without data is none; some servers send such ones to keep a connection alive.
    if (data !== undefined && data !== "") take(data);
  }

  return {
    read(bytes) {
      const cut = bytes.lastIndexOf(lineFeed) + 1;
      if (cut > 0) {
        const lines = cut === bytes.length ? bytes : bytes.subarray(0, cut);
        readLines(tail.length === 0 ? lines : Buffer.concat([...tail, lines]));
        tail = [];
      }
      if (cut < bytes.length) tail.push(cut === 0 ? bytes : bytes.subarray(cut));
    },
    end() {
      readLines(Buffer.concat(tail));
      complete();
    },
  };
}

/** Some servers write bare JSON, for an error or a complete answer, or name an error's field after it: no field of the standard looks like either. */
function isBare(text: string, from: number, end: number): boolean {
  return text.charCodeAt(end - 1) === 0x7d && (text.startsWith('{"', from) || text.startsWith('error: {"', from));
}

/** Any other bytes are refused: a replacement character would be an invented one. */
export function decode(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new GatewayError("adapter_protocol", "The upstream answered with bytes that are not UTF-8.");
}

const maxDepth = 1_000;

/** What is nested more deeply exhausts the stack of whoever writes it again. */
export function checkDepth(json: string): void {
  // Hardly any event is so long.
  if (json.length < 8 * maxDepth) return;
  let depth = 0;
  let isText = false;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === quote) isText = !isText;
    else if (isText && code === backslash) at += 1;
    else if (!isText && (code === 0x5b || code === 0x7b)) depth += 1;
    else if (!isText && (code === 0x5d || code === 0x7d)) depth -= 1;
    if (depth > maxDepth) throw tooLarge(`${maxDepth} levels`);
  }
}

const quote = 0x22;
const backslash = 0x5c;
