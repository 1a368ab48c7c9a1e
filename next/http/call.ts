/** One request on its way: what came, who asks, and what will be told of it in the end. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { GatewayError } from "../core/errors.ts";
import type { Said } from "../core/gateway.ts";
import type { Door, HttpSettings, Token } from "./settings.ts";

export interface Call {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Its path without the query, decoded, and as the routes know it. */
  readonly path: string;
  /** What its path has in the places that its route leaves open. */
  readonly names: readonly string[];
  /** What was in force when it came. */
  readonly settings: HttpSettings;
  /** Set before any handler that needs one. */
  token: Token;
  /** For the log, once it is over. */
  readonly record: CallRecord;
}

/** What is told of a request when it is over. */
export interface CallRecord {
  readonly startedAt: number;
  address: string | undefined;
  owner: string | undefined;
  failure: GatewayError | undefined;
  /** What was thrown, if nobody threw it on purpose. */
  bug: unknown;
  said: Said | undefined;
  firstWordAt: number | undefined;
}

/** What to send; a handler that has sent its answer itself returns none. */
export interface Result {
  readonly status?: number | undefined;
  /** Text is JSON that is already written. */
  readonly body: string | object;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export type Handler = (call: Call) => Promise<Result | undefined> | Result | undefined;

export interface Route {
  readonly method: string;
  /** `:name` leaves a place open. */
  readonly path: string;
  readonly handle: Handler;
  /** What a token must open, one of them; none: no token is asked for. */
  readonly doors: readonly Door[];
}
