/** Numbers the messages of a stream, so that a caller who was cut off can go on behind the last one it has. */
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Resumption } from "../core/gateway.ts";

export interface Numbering {
  /** The number of the last message that the caller has; the stream goes on behind it. */
  readonly after: number | undefined;
  /** Each message tells its turn and its number, as an `id:` line. */
  readonly showsIds: boolean;
}

/** Takes a speaker's text, which is whole messages, and gives what of it the caller lacks; all of it if it `mustTell`. */
export type NumberMessages = (text: string, mustTell?: boolean) => string;

export function createNumbering({ after = -1, showsIds }: Numbering, turnId: string): NumberMessages {
  const name = toName(turnId);
  let next = 0;
  return (text, mustTell = false) => {
    let told = "";
    let from = 0;
    // JSON holds no bare line end, so an empty line is the end of a message.
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n", from)) {
      const number = next++;
      // The end is told in any case: whoever asks for what comes behind it must not take silence for a cut.
      if (number > after || mustTell || text.startsWith(endMark, from))
        told += (showsIds ? `id: ${name}-${number}\n` : "") + text.slice(from, end + 2);
      from = end + 2;
    }
    return told;
  };
}

const endMark = "data: [DONE]";

/** The end of a turn's id, which is chance: enough to tell the attempts at one request apart. */
function toName(turnId: string): string {
  return turnId.slice(-8);
}

/** The last message that a caller has of a stream. */
interface LastEvent extends Resumption {
  readonly number: number;
}

/** What a caller sends when it takes up a stream again: the id of a message, or its number alone. */
export function readLastEventId(headers: IncomingHttpHeaders): LastEvent | undefined {
  const value = headers["last-event-id"];
  if (value === undefined || value === "") return undefined;
  const [, name, number = value] = /^([0-9a-f]{8})-(.*)$/.exec(String(value)) ?? [];
  const param = "Last-Event-ID";
  return { param, number: toNumber(number, param), isOf: (turnId) => name === undefined || name === toName(turnId) };
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
