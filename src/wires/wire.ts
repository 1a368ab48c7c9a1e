/** A wire dialect, in both directions: the front door reads requests and writes answers, an adapter the reverse. */
import type { Tell } from "../core/adapter.ts";
import type { Delta, Event } from "../core/event.ts";
import type { Heading } from "../core/gateway.ts";
import type { Answer, Ask, Turn } from "../core/turn.ts";

/** The half that the front door uses. */
export interface Front {
  /** Throws a GatewayError that names the field. */
  readRequest(body: unknown, circumstances: Circumstances): Request;
}

/** What a wire knows of a request beside its body. */
export interface Circumstances {
  readonly seal: Seal;
  /** The operator shows reasoning to callers who do not ask for it. */
  readonly exposesReasoning: boolean;
}

/** Of one owner: seals what its callers carry for the gateway, and opens it again. */
export interface Seal {
  seal(text: string): string;
  isOurs(sealed: string): boolean;
  /** Undefined: another owner's, or tampered with. */
  open(sealed: string): string | undefined;
}

export interface Request {
  readonly ask: Ask;
  readonly voice: Voice;
}

/** Tells one turn to its caller. */
export interface Voice {
  /** The whole answer as JSON text; not called for a failed one. */
  whole(heading: Heading, answer: Answer): string;
  /** Of a turn that is not over; only a wire with background turns has it. */
  progress?(heading: Heading, state: Progress): string;
  /**
   * Turns batches of events into server-sent events; what it returns is one write. `tellsError`: a failure is an error
   * before it is the turn's end, as everywhere but over a WebSocket.
   */
  stream(heading: Heading, tellsError?: boolean): (events: readonly Event[]) => string;
}

export type Progress = "queued" | "in_progress";

/** The half that an adapter uses. */
export interface Back {
  /** Behind the server's base address. */
  readonly path: string;
  /** The body of a request upstream; what cannot be said in this dialect is told as left out. */
  writeRequest(turn: Turn, habits: Habits, tell: Tell): string;
  readReply(text: string, habits: Habits, turn: Turn): readonly Delta[];
  createReader(habits: Habits, turn: Turn): Reader;
}

/** Reads a stream as it comes. */
export interface Reader {
  /** The events' data, one by one: text behind `data:`. Throws a GatewayError for an error that the server tells. */
  read(data: string, deltas: Delta[]): void;
  /** The server has said why it stopped: a connection that breaks now does no harm. */
  readonly isFinished: boolean;
}

/** What a server understands and expects, as its adapter is configured. */
export interface Habits {
  /** Its address: whoever signs something is named by it. */
  readonly source: string;
  readonly sendsReasoning: boolean;
  readonly hasCustomTools: boolean;
  /** Absent: a caller's own of the same dialect, else the newer one. */
  readonly maxTokensField?: "max_completion_tokens" | "max_tokens" | undefined;
  /** Absent: as a caller of the same dialect wrote it, else `system`. */
  readonly developerRole?: "developer" | "system" | undefined;
}
