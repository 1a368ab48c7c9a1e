/** Numbers the messages of a stream, so that a caller that was cut off can resume after the last it has. */
import type { IncomingHttpHeaders } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Resumption } from "../core/gateway.ts";

export interface Numbering {
  /** The number of the last message the caller has; the stream resumes after it. */
  readonly after: number | undefined;
  /** Each message has its turn and number in an `id:` line. */
  readonly showsIds: boolean;
}

/** Takes a voice's text, which is whole messages, and returns what the caller lacks of it; all of it if `mustSend`. */
export type NumberMessages = (text: string, mustSend?: boolean) => string;

export function createNumbering({ after = -1, showsIds }: Numbering, turnId: string): NumberMessages {
  const name = toName(turnId);
  let next = 0;
  return (text, mustSend = false) => {
    let told = "";
    for (const message of toMessages(text)) {
      const number = next++;
      // The end is always sent: a caller that resumes after it must not take silence for a lost connection.
      if (number > after || mustSend || message === "data: [DONE]")
        told += `${showsIds ? `id: ${name}-${number}\n` : ""}${message}\n\n`;
    }
    return told;
  };
}

/** The server-sent messages of a voice's text. JSON here has no bare newline, so an empty line ends a message. */
export function toMessages(text: string): readonly string[] {
  return text.split("\n\n").slice(0, -1);
}

/** The random end of a turn's id: enough to tell the attempts at one request apart. */
function toName(turnId: string): string {
  return turnId.slice(-8);
}

/** The last message of a stream that a caller has. */
interface LastEvent extends Resumption {
  readonly number: number;
}

/** What a caller sends to resume a stream: the id of a message, or only its number. */
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
    `Invalid '${param}': expected the number of an event: an integer, 0 or greater.`,
    { param },
  );
}
