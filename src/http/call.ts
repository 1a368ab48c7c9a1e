/** One request on its way: what came, who asks, what it takes, and what is told of it when it is over. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { callerLeft, type GatewayError } from "../core/errors.ts";
import type { Heading, Said } from "../core/gateway.ts";
import type { Promised } from "../core/live.ts";
import type { Answer, Trace } from "../core/turn.ts";
import type { Share } from "./budget.ts";
import type { Door, HttpSettings, Token } from "./settings.ts";

/** What is known of a request, or of a turn of a connection: filled while it lasts, told once at its end. */
export interface CallRecord {
  readonly kind: "request";
  readonly id: string;
  readonly clientId?: string | undefined;
  /** Its place in its caller's trace. */
  readonly trace: Trace | undefined;
  readonly method: string | undefined;
  /** Without the query, as the routes know it; encoded letters are decoded. */
  readonly path: string;
  readonly address: string | undefined;
  readonly startedAt: number;
  owner?: string | undefined;
  route?: string | undefined;
  /** What names the object that it is about. */
  objectId?: string | undefined;
  /** It needs no token, so there are many of it that tell nothing new. */
  isQuiet: boolean;
  /** Its handler has sent the answer itself. */
  isStreamed: boolean;
  /** Before its end only of one that has become a connection. */
  status: number | undefined;
  /** As soon as it is known. */
  heading?: Heading | undefined;
  key?: string | undefined;
  answer?: Answer | undefined;
  failure?: GatewayError | undefined;
  firstMs?: number | undefined;
  ms: number;
}

export interface CallObserver {
  /** A request begins, or a turn of a connection: its place in its caller's trace. */
  begin(headers: IncomingHttpHeaders): Trace | undefined;
  /** It is over. Told once of each. */
  ended(record: CallRecord): void;
  /** Told of what was no request. */
  refused(error: GatewayError, id: string, address: string | undefined): void;
}

export function noteSaid(record: CallRecord, said: Said | Promised): void {
  record.heading = said.heading;
  record.key = said.heading.key;
  // What is replayed was told before.
  if ("answer" in said && said.isRepeated !== true) record.answer = said.answer;
}

/** A caller, and the terms on which it was let in. */
export type Admitted = Pick<Call, "settings" | "token">;

/** What every request needs of its server. */
interface CallParts {
  readonly now: () => number;
  readonly open: (token: Token, settings: HttpSettings) => Share;
  /** The same caller on the terms of now; throws what a request would get. */
  readonly readmit: (call: Call) => Admitted;
  /** It is over: its answer is sent, or never will be, and its handler is through. */
  readonly ended: (call: Call) => void;
}

/** Of routes that ask for no token. */
const nobody: Token = { owner: "", sha256: "", opens: new Set() };

export class Call {
  seat = 0;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What was in force when it came. */
  settings: HttpSettings;
  readonly record: CallRecord;
  /** What was sent behind the head of a request that leaves HTTP. */
  readonly head: Buffer | undefined;
  /** What its path has in the places that its route leaves open. */
  names: readonly string[] = [];
  /** Set before any handler that needs one. */
  token: Token = nobody;
  private readonly parts: CallParts;
  private control: AbortController | undefined;
  private stopped: GatewayError | undefined;
  private taken: Share | undefined;
  /** Its answer, and its handler. */
  private unended = 2;

  constructor(
    parts: CallParts,
    { request, response, settings, record, head }: Pick<Call, "request" | "response" | "settings" | "record" | "head">,
  ) {
    this.parts = parts;
    this.request = request;
    this.response = response;
    this.settings = settings;
    this.record = record;
    this.head = head;
  }

  /** Aborts when the caller leaves, and at the end of the drain time. */
  get signal(): AbortSignal {
    this.control ??= new AbortController();
    if (this.stopped !== undefined) this.control.abort(this.stopped);
    return this.control.signal;
  }

  /** What it takes of what all share. Its turn's place is given back when its handler is through, bytes when it is over. */
  get share(): Share {
    return (this.taken ??= this.parts.open(this.token, this.settings));
  }

  /** One turn of its connection: told apart, and let in anew. */
  begin(trace: Trace | undefined): Call {
    const { parts, request, response, settings, head } = this;
    const about = { trace, method: "response.create", startedAt: parts.now(), isStreamed: true, status: undefined };
    return new Call(parts, { request, response, settings, head, record: { ...this.record, ...about } });
  }

  readmit(): void {
    Object.assign(this, this.parts.readmit(this));
  }

  stop(reason: GatewayError): void {
    this.stopped ??= reason;
    this.control?.abort(this.stopped);
  }

  /** Its answer is sent, or its connection is gone. */
  close(): void {
    const { record, response } = this;
    record.ms = this.parts.now() - record.startedAt;
    if (!response.writableFinished && record.status === undefined) this.stop((record.failure ??= callerLeft()));
    this.end();
  }

  /** Its handler is through; its answer may not have been read. */
  leave(): void {
    this.taken?.leave();
    this.end();
  }

  private end(): void {
    this.unended -= 1;
    if (this.unended > 0) return;
    const { record, response } = this;
    const { failure } = record;
    record.status ??= response.writableFinished || failure === undefined ? response.statusCode : failure.status;
    this.taken?.release();
    this.parts.ended(this);
  }
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

/** Makes routes behind these doors. */
export function behind(...doors: readonly Door[]) {
  return (method: string, path: string, handle: Handler): Route => ({ method, path, doors, handle });
}
