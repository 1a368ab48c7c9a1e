/** Numbers the messages of a stream, so that a caller who was cut off can go on behind the last one it has. */
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";

export interface Numbering {
  /** The number of the last message that the caller has; the stream goes on behind it. */
  readonly after: number | undefined;
  /** Each message tells its number, as an `id:` line. */
  readonly showsIds: boolean;
}

/** Takes a speaker's text, which is whole messages, and gives what of it the caller lacks. */
export function createNumbering({ after = -1, showsIds }: Numbering): (text: string) => string {
  let next = 0;
  return (text) => {
    let told = "";
    let from = 0;
    // JSON holds no bare line end, so an empty line is the end of a message.
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n", from)) {
      const number = next++;
      // The end is told in any case: whoever asks for what comes behind it must not take silence for a cut.
      if (number > after || text.startsWith(endMark, from))
        told += (showsIds ? `id: ${number}\n` : "") + text.slice(from, end + 2);
      from = end + 2;
    }
    return told;
  };
}

const endMark = "data: [DONE]";

/** The number that a caller sends when it takes up a stream again. */
export function readLastEventId(headers: IncomingHttpHeaders): number | undefined {
  const value = headers["last-event-id"];
  return value === undefined || value === "" ? undefined : toNumber(value, "Last-Event-ID");
}

/** The same as a query parameter. */
export function readStartingAfter(value: unknown): number | undefined {
  return value === undefined || value === "" ? undefined : toNumber(value, "starting_after");
}

function toNumber(value: unknown, param: string): number {
  if (typeof value === "string" && /^\d{1,15}$/.test(value)) return Number(value);
  throw new GatewayError(
    "invalid_value",
    `Invalid '${param}': expected the number of an event, a whole number from 0 on.`,
    { param },
  );
}
