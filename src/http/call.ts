/** One request on its way: what came, who asks, what it takes, and what will be told of it in the end. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { GatewayError } from "../core/errors.ts";
import type { Heading, Said } from "../core/gateway.ts";
import type { Trace } from "../core/turn.ts";
import type { Door, HttpSettings, Token } from "./settings.ts";
import type { Share } from "./shares.ts";

export interface Call {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Its path without the query, as the routes know it; encoded letters are decoded. */
  readonly path: string;
  /** What its path has in the places that its route leaves open. */
  names: readonly string[];
  /** What was in force when it came. */
  readonly settings: HttpSettings;
  /** Set before any handler that needs one. */
  token: Token;
  /** Aborts when the caller leaves, and at the end of the drain time. */
  readonly signal: AbortSignal;
  /** What it takes of what all share. Its turn's place is given back when its handler is through, bytes when it is over. */
  readonly share: Share;
  /** The same caller later, for each turn of a connection: on the terms of then. Throws what a request would get. */
  readmit(): Pick<Call, "settings" | "token" | "share">;
  /** What was sent behind the head of a request that leaves HTTP. */
  readonly head?: Buffer | undefined;
  readonly record: CallRecord;
}

/** What becomes known of a request until it is over, and is told then. */
export interface CallRecord {
  readonly startedAt: number;
  /** Its place in its caller's trace. */
  readonly trace: Trace | undefined;
  readonly address: string | undefined;
  owner?: string | undefined;
  route?: string | undefined;
  /** What names the object that it is about, where that is not in its path. */
  objectId?: string | undefined;
  failure?: GatewayError | undefined;
  /** As soon as it is known. */
  heading?: Heading | undefined;
  said?: Said | undefined;
  firstWordAt?: number | undefined;
  /** Its handler has sent the answer itself. */
  isStreamed: boolean;
  /** It has become a connection, whose turns are told one by one. */
  isUpgraded: boolean;
  /** It needs no token, so there are many of it that tell nothing new. */
  isQuiet: boolean;
}

/** What to send; a handler that has sent its answer itself returns none. */
export interface Result {
  readonly status?: number | undefined;
  /** Text is JSON that is already written, unless a header says otherwise; absent: the head is all. */
  readonly body?: string | object | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export type Handler = (call: Call) => Promise<Result | undefined> | Result | undefined;

export interface Route {
  /** `UPGRADE`: a GET that asks to become a WebSocket. */
  readonly method: string;
  /** `:name` leaves a place open, `*` all that follows. */
  readonly path: string;
  readonly handle: Handler;
  /** What a token must open, one of them; none: no token is asked for. */
  readonly doors: readonly Door[];
}
