/** Numbers the messages of a stream, so that a reader that was cut off can resume behind the last one that it has. */
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";

/** Takes a voice's text, which is whole messages, and returns what the reader lacks of it. `isEnd`: it is the turn's end. */
export type NumberMessages = (text: string, isEnd: boolean) => string;

/** `after`: the number of the last message that the reader has. */
export function createNumbering(key: string, after = -1): NumberMessages {
  const name = toName(key);
  let next = 0;
  return (text, isEnd) => {
    // JSON here has no bare newline, so an empty line ends a message.
    const messages = text.split("\n\n").slice(0, -1);
    // The reader of a gateway that died may have more than is known of the turn, but not its end.
    const isAhead = isEnd && after >= next + messages.length;
    let told = "";
    for (const message of messages) {
      const number = next++;
      // Whoever resumes behind the end must not take silence for a lost connection.
      if (number > after || isAhead || message === "data: [DONE]") told += `id: ${name}-${number}\n${message}\n\n`;
    }
    return told;
  };
}

/** The random end of a turn's key: enough to tell the attempts at one request apart. */
function toName(key: string): string {
  return key.slice(-8);
}

/** The last message of a stream that a reader has. */
interface LastEvent {
  readonly number: number;
  isOf(key: string): boolean;
}

/** The id of a message, or only its number. */
export function readLastEventId(headers: IncomingHttpHeaders): LastEvent | undefined {
  const value = headers["last-event-id"];
  if (value === undefined || value === "") return undefined;
  const [, name, number = value] = /^([0-9a-f]{8})-(.*)$/.exec(String(value)) ?? [];
  return {
    number: toNumber(String(number), "Last-Event-ID"),
    isOf: (key) => name === undefined || name === toName(key),
  };
}

/** The same as a query parameter. */
export function readStartingAfter(query: URLSearchParams): number | undefined {
  const value = query.getAll("starting_after").join();
  return value === "" ? undefined : toNumber(value, "starting_after");
}

function toNumber(value: string, param: string): number {
  if (/^\d{1,15}$/.test(value)) return Number(value);
  const message = `Invalid '${param}': expected the number of an event: an integer, 0 or greater.`;
  throw new GatewayError("invalid_value", message, { param });
}
