/** One request and its answer: batches wait to be taken, too many pause the socket, an abort or a deadline closes it. */
import type { Dispatcher } from "undici";
import type { Reply } from "../../core/adapter.ts";
import { callerLeft, GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import type { Reader } from "../../wires/wire.ts";
import type { Client } from "./client.ts";
import { createEvents, decode, type Events } from "./events.ts";
import { brokenOff, type Limit, toLateness, toNetworkFailure } from "./failure.ts";
import { type Headers, headerOf, toForeign, toRefusal } from "./refusal.ts";
import { type Scrub, scrubError } from "./secrets.ts";
import { createWatch } from "./watch.ts";

export interface Question {
  readonly method: "GET" | "POST";
  /** Below the base URL. */
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body?: string | undefined;
  readonly limits: Limits;
}

export interface Limits {
  readonly firstByteMs: number;
  readonly idleMs: number;
  /** Instead of the others: what is not streamed may be silent until it is there. */
  readonly totalMs?: number | undefined;
}

/** How an answer is read. Servers stream, or do not, whatever was requested. */
export interface Reading {
  readWhole(text: string): readonly Delta[];
  createReader(): Reader;
  /** For what is told of errors. */
  readonly scrub: Scrub;
}

/** Resolves with the first word and all before it; until then a failure is thrown here. */
export async function ask(client: Client, question: Question, reading: Reading, signal: AbortSignal): Promise<Reply> {
  const exchange = new Exchange(client, question.limits, reading, signal);
  exchange.start(question);
  const next = () => exchange.next();
  let early: readonly Delta[] | undefined;
  for (;;) {
    const batch = await exchange.next();
    if (batch === undefined) return { first: early ?? [], next };
    const first: readonly Delta[] = early === undefined ? batch : [...early, ...batch];
    if (batch.some(isWord)) return { first, next };
    early = first;
  }
}

/** What is only about the answer may come before, and the answer still fail. */
function isWord({ type }: Delta): boolean {
  return type !== "notes" && type !== "usage" && type !== "message-extra" && type !== "finish";
}

const maxBytes = 64 * 1024 * 1024;
/** Batches that may wait; then the server is paused until they are taken. */
const maxBatches = 4;
/** How long to wait for what may follow the finish, such as usage; and for the end of what has been read. */
const restMs = 5_000;
const leaveMs = 1_000;
/** A body that only explains its head is worth its beginning. */
const startMs = 500;
const maxStartBytes = 64 * 1024;

/** `refusal` and `foreign` are no answers; of what has no content type the first byte decides. */
type Form = "unknown" | "events" | "whole" | "refusal" | "foreign";
type Wait = Limit | "rest" | "leave" | "start";

class Exchange implements Dispatcher.DispatchHandler {
  readonly #client: Client;
  readonly #limits: Limits;
  readonly #reading: Reading;
  readonly #signal: AbortSignal;
  readonly #watch = createWatch<Wait>((wait, limitMs) => this.#late(wait, limitMs));
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: Headers = {};
  #form: Form = "unknown";
  #bytes = 0;
  #pieces: Buffer[] = [];
  #reader: Reader | undefined;
  #events: Events | undefined;
  #isResting = false;
  #isDone = false;
  /** What this read of the socket brought so far, and what waits of those before. */
  #batch: Delta[] | undefined;
  readonly #batches: (readonly Delta[])[] = [];
  #taker: PromiseWithResolvers<readonly Delta[] | undefined> | undefined;
  #isOver = false;
  #failure: unknown;

  constructor(client: Client, limits: Limits, reading: Reading, signal: AbortSignal) {
    this.#client = client;
    this.#limits = limits;
    this.#reading = reading;
    this.#signal = signal;
  }

  start({ method, path, headers, body }: Question): void {
    if (this.#signal.aborted) return this.#abandon();
    this.#signal.addEventListener("abort", this.#abandon);
    this.#client.dispatch({ method, path: this.#client.toPath(path), headers, body: body && encode(body) }, this);
  }

  next(): Promise<readonly Delta[] | undefined> {
    const batch = this.#batches.shift();
    if (batch !== undefined) {
      if (this.#batches.length === 0 && this.#controller?.paused === true) this.#resume(this.#controller);
      return Promise.resolve(batch);
    }
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#isOver) return Promise.resolve(undefined);
    this.#taker = Promise.withResolvers();
    return this.#taker.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    const { totalMs, firstByteMs } = this.#limits;
    if (this.#isOver) controller.abort(new Error("The exchange is over."));
    else if (totalMs === undefined) this.#watch.enter("first_byte", firstByteMs);
    else this.#watch.enter("total", totalMs);
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Headers): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    this.#form = status > 299 ? "refusal" : formOf(typeOf(headers));
    if (this.#form === "refusal" || this.#form === "foreign") this.#watch.enter("start", startMs);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#isOver) return;
    if (this.#bytes > maxBytes) return this.#fail(tooLarge());
    if (this.#form === "unknown") this.#form = guessForm(chunk);
    if (this.#form === "events") return this.#hear(chunk);
    this.#pieces.push(chunk);
    if (this.#form !== "whole" && this.#bytes > maxStartBytes) this.#close(undefined);
  }

  onResponseEnd(): void {
    this.#close(undefined);
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#close(toNetworkFailure(error, this.#client.address));
  }

  #hear(chunk: Buffer): void {
    try {
      this.#openEvents().read(chunk);
    } catch (thrown) {
      return this.#fail(thrown);
    }
    if (this.#isDone) this.#leave();
    else if (this.#reader?.isFinished !== true) this.#expectMore();
    else if (!this.#isResting) this.#watch.enter("rest", restMs);
    this.#isResting = this.#reader?.isFinished === true;
  }

  #openEvents(): Events {
    const reader = (this.#reader ??= this.#reading.createReader());
    return (this.#events ??= createEvents((data) => {
      if (this.#isDone) return;
      if (this.#batch === undefined) queueMicrotask(this.#flush);
      reader.read(data, (this.#batch ??= []));
      this.#isDone = data.startsWith("[DONE]");
    }));
  }

  /** Once a read: a server may write many chunks at a time. */
  readonly #flush = (): void => {
    const batch = this.#batch;
    this.#batch = undefined;
    if (batch === undefined || batch.length === 0) return;
    if (this.#taker !== undefined) {
      this.#taker.resolve(batch);
      this.#taker = undefined;
      return;
    }
    this.#batches.push(batch);
    if (this.#batches.length < maxBatches || this.#isOver) return;
    this.#controller?.pause();
    if (this.#limits.totalMs === undefined) this.#watch.stop();
  };

  #resume(controller: Dispatcher.DispatchController): void {
    if (!this.#isOver) this.#expectMore();
    controller.resume();
  }

  #expectMore(): void {
    if (this.#limits.totalMs === undefined) this.#watch.enter("idle", this.#limits.idleMs);
  }

  /** All has been read that will come: judges what it was. */
  #close(failure: GatewayError | undefined): void {
    if (this.#isOver) return this.#watch.stop();
    try {
      switch (this.#form) {
        case "refusal":
          throw toRefusal(this.#status, this.#headers, this.#start(), this.#reading.scrub);
        case "foreign":
          throw toForeign(typeOf(this.#headers), this.#start(), this.#reading.scrub);
        case "events":
          return this.#closeEvents(failure);
        case "unknown":
          throw failure ?? brokenOff();
        case "whole":
          if (failure !== undefined) throw failure;
          this.#batch = [...this.#reading.readWhole(decode(join(this.#pieces)).trimStart())];
          return this.#settle(undefined);
      }
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** After the finish nothing can be missed. */
  #closeEvents(failure: GatewayError | undefined): void {
    const isWhole = (): boolean => this.#reader?.isFinished === true;
    try {
      if (failure !== undefined) throw failure;
      this.#openEvents().end();
      if (!isWhole()) throw brokenOff();
    } catch (thrown) {
      if (!isWhole()) throw thrown;
    }
    this.#settle(undefined);
  }

  /** After `[DONE]`, an answer that is about to end keeps its connection. */
  #leave(): void {
    if (this.#reader?.isFinished !== true) return this.#fail(brokenOff());
    this.#settle(undefined);
    this.#watch.enter("leave", leaveMs);
  }

  #late(wait: Wait, limitMs: number): void {
    switch (wait) {
      case "leave":
        break;
      case "rest":
        this.#settle(undefined);
        break;
      case "start":
        this.#close(undefined);
        break;
      default:
        this.#close(toLateness(wait, limitMs, this.#client.address));
    }
    this.#cut();
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
    this.#watch.stop();
    this.#signal.removeEventListener("abort", this.#abandon);
    this.#flush();
    if (failure === undefined) this.#taker?.resolve(undefined);
    else this.#taker?.reject(failure);
  }

  #start(): string {
    return join(this.#pieces).toString("utf8", 0, maxStartBytes);
  }
}

function typeOf(headers: Headers): string {
  const [type = ""] = headerOf(headers, "content-type").split(";", 1);
  return type.trim().toLowerCase();
}

function formOf(type: string): Form {
  if (type === "text/event-stream") return "events";
  if (type === "application/json" || type.endsWith("+json")) return "whole";
  return type === "" ? "unknown" : "foreign";
}

function guessForm(chunk: Buffer): Form {
  const start = chunk.toString("utf8", 0, 100).trimStart();
  if (start.startsWith("{") || start.startsWith("[")) return "whole";
  return /^(data|event|id|retry)?:/.test(start) ? "events" : "foreign";
}

/** Of a long text `Buffer.from` takes two to three times as long. */
function encode(text: string): string | Buffer {
  if (text.length < 4_096) return text;
  const room = Buffer.allocUnsafeSlow(3 * text.length);
  return room.subarray(0, room.write(text));
}

function join(pieces: readonly Buffer[]): Buffer {
  const [only] = pieces;
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces);
}

function tooLarge(): GatewayError {
  return new GatewayError("adapter_protocol", `The upstream's answer is larger than ${maxBytes} bytes.`, {
    wireCode: "adapter_answer_too_large",
  });
}
