/** One request and its answer: batches wait to be taken, too many pause the socket, an abort or a deadline closes it. */
import type { Dispatcher } from "undici";
import type { Reply } from "../../core/adapter.ts";
import { callerLeft, GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Reader } from "../../wires/wire.ts";
import { createDeadline, type Deadline, type Timeouts, toReply } from "../waiting.ts";
import type { Client, Question } from "./client.ts";
import { checkDepth, createEvents, decode, type Events } from "./events.ts";
import { brokenOff, type Headers, headerOf, toNetworkFailure, tooLarge, toRefusal } from "./failure.ts";
import { type Scrub, scrubError } from "./secrets.ts";

/** How an answer is read. Servers stream, or do not, whatever was requested. */
export interface Reading {
  readWhole(text: string): readonly Delta[];
  createReader(): Reader;
  /** For what is told of errors. */
  readonly scrub: Scrub;
  readonly timeouts: Timeouts;
  /** Whether a stream was requested: what is not streamed may be silent until it is there. */
  readonly stream: boolean;
}

/** Resolves with the first word and all before it; until then a failure is thrown here. */
export function ask(client: Client, question: Question, reading: Reading, signal: AbortSignal): Promise<Reply> {
  const exchange = new Exchange(client, question, reading, signal);
  return toReply(exchange.next, exchange.close);
}

const maxBytes = 64 * 1024 * 1024;
/** Batches that may wait; then the server is paused until they are taken. */
const maxBatches = 4;
/** How long to wait for what may follow the finish, such as usage; and, to use the connection again, for the end. */
const restMs = 5_000;
const leaveMs = 1_000;
/** A body that only explains its head is worth its beginning. */
const startMs = 500;
const maxStartBytes = 64 * 1024;

/** A refusal is no answer. */
type Form = "events" | "whole" | "refusal";

class Exchange implements Dispatcher.DispatchHandler {
  readonly #client: Client;
  readonly #reading: Reading;
  readonly #signal: AbortSignal;
  readonly #deadline: Deadline;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Headers = {};
  #form: Form | undefined;
  #bytes = 0;
  #pieces: Buffer[] = [];
  #reader: Reader | undefined;
  #events: Events | undefined;
  /** What this read of the socket brought so far, and what waits of those before. */
  #batch: Delta[] | undefined;
  readonly #batches: (readonly Delta[])[] = [];
  #taker: PromiseWithResolvers<readonly Delta[] | undefined> | undefined;
  #isOver = false;
  #failure: unknown;

  constructor(client: Client, question: Question, reading: Reading, signal: AbortSignal) {
    this.#client = client;
    this.#reading = reading;
    this.#signal = signal;
    const who = `the upstream at ${client.address}`;
    this.#deadline = createDeadline(who, reading.timeouts, reading.stream, (lateness) => {
      this.#close(lateness);
      this.#cut();
    });
    if (signal.aborted) this.#abandon();
    else {
      signal.addEventListener("abort", this.#abandon);
      client.send(question, this);
    }
  }

  readonly next = (): Promise<readonly Delta[] | undefined> => {
    const batch = this.#batches.shift();
    if (batch !== undefined) {
      if (this.#batches.length === 0 && this.#controller?.paused === true) this.#resume(this.#controller);
      return Promise.resolve(batch);
    }
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#isOver) return Promise.resolve(undefined);
    this.#taker = Promise.withResolvers();
    return this.#taker.promise;
  };

  /** Cuts off a server that has more to say than is wanted. An answer that is complete keeps its connection. */
  readonly close = (): void => {
    if (!this.#isOver) this.#abandon();
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) this.#cut();
    else this.#deadline.expect("first_byte");
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#form = status > 299 ? "refusal" : formOf(headers);
    if (this.#form === "refusal") this.#deadline.enter("total", startMs);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bytes += chunk.length;
    if (this.#bytes > maxBytes) return this.#fail(tooLarge(`${maxBytes} bytes`));
    this.#form ??= startsAsJson(chunk) ? "whole" : "events";
    if (this.#form === "events") return this.#hear(chunk);
    this.#pieces.push(chunk);
    if (this.#form === "refusal" && this.#bytes > maxStartBytes) this.#close(undefined);
  }

  onResponseEnd(): void {
    this.#close(undefined);
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#close(toNetworkFailure(error, this.#client.address));
  }

  #hear(chunk: Buffer): void {
    if (this.#batch === undefined) {
      this.#batch = [];
      queueMicrotask(this.#flush);
    }
    try {
      this.#openEvents().read(chunk);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #openEvents(): Events {
    if (this.#events !== undefined) return this.#events;
    const reader = this.#reading.createReader();
    this.#reader = reader;
    this.#events = createEvents((data) => {
      if (this.#isOver) return;
      checkDepth(data);
      reader.read(data, (this.#batch ??= []));
      if (data.startsWith("[DONE]")) this.#leave();
    });
    return this.#events;
  }

  /** Once a read: a server may write many chunks at a time. */
  readonly #flush = (): void => {
    const batch = this.#batch;
    this.#batch = undefined;
    if (!this.#isOver) this.#expectMore();
    if (batch !== undefined && batch.length > 0) this.#deliver(batch);
  };

  #deliver(batch: readonly Delta[]): void {
    if (this.#taker !== undefined) {
      this.#taker.resolve(batch);
      this.#taker = undefined;
      return;
    }
    this.#batches.push(batch);
    if (this.#batches.length < maxBatches || this.#isOver) return;
    this.#controller?.pause();
    this.#deadline.pause();
  }

  #resume(controller: Dispatcher.DispatchController): void {
    if (!this.#isOver) this.#expectMore();
    controller.resume();
  }

  #expectMore(): void {
    if (this.#reader?.isFinished === true) this.#deadline.enter("idle", restMs);
    else this.#deadline.expect("idle");
  }

  /** All has been read that will come: judges what it was. */
  #close(failure: GatewayError | undefined): void {
    if (this.#isOver) return this.#deadline.stop();
    try {
      switch (this.#form) {
        case "refusal":
          throw toRefusal(this.#status, this.#headers, this.#start(), this.#reading.scrub);
        case "events":
          this.#endEvents(failure);
          break;
        case "whole":
          if (failure !== undefined) throw failure;
          this.#deliver(this.#readWhole());
          break;
        case undefined:
          throw failure ?? brokenOff();
      }
      this.#settle(undefined);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #readWhole(): readonly Delta[] {
    const text = decode(join(this.#pieces)).trimStart();
    checkDepth(text);
    return this.#reading.readWhole(text);
  }

  /** After the finish nothing can be missed. */
  #endEvents(failure: GatewayError | undefined): void {
    const isWhole = (): boolean => this.#reader?.isFinished === true;
    try {
      if (failure !== undefined) throw failure;
      this.#openEvents().end();
      if (!isWhole()) throw brokenOff();
    } catch (thrown) {
      if (!isWhole()) throw thrown;
    }
  }

  /** After `[DONE]`, an answer that is about to end keeps its connection. */
  #leave(): void {
    if (this.#reader?.isFinished !== true) throw brokenOff();
    this.#settle(undefined);
    this.#deadline.enter("idle", leaveMs);
  }

  readonly #abandon = (): void => {
    const { reason } = this.#signal;
    this.#settle(reason instanceof GatewayError ? reason : callerLeft());
    this.#cut();
  };

  #fail(thrown: unknown): void {
    this.#settle(thrown instanceof GatewayError ? scrubError(thrown, this.#reading.scrub) : thrown);
    this.#cut();
  }

  #cut(): void {
    this.#controller?.abort(new Error("The exchange is over."));
  }

  /** Nothing more will be told; what was said before may still be taken. */
  #settle(failure: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = failure;
    this.#pieces = [];
    this.#deadline.stop();
    this.#signal.removeEventListener("abort", this.#abandon);
    this.#flush();
    if (failure === undefined) this.#taker?.resolve(undefined);
    else this.#taker?.reject(failure);
  }

  #start(): string {
    return join(this.#pieces).toString("utf8", 0, maxStartBytes);
  }
}

/** Of what has no content type the first byte decides. */
function formOf(headers: Headers): Form | undefined {
  const type = headerOf(headers, "content-type").toLowerCase();
  if (type.startsWith("text/event-stream")) return "events";
  if (/^application\/([\w.-]+\+)?json\b/.test(type)) return "whole";
  return type === "" ? undefined : "refusal";
}

function startsAsJson(chunk: Buffer): boolean {
  return /^\s*[[{]/.test(chunk.toString("latin1", 0, 100));
}

function join(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
}
