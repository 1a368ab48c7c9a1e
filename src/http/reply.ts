/** The answer to one HTTP request: its head is gathered, then all of it leaves in one write. */
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { HttpRequest } from "./request.ts";

export interface ReplyParts {
  /** Called with what is about to be sent as a whole; if it throws, nothing is. */
  readonly beforeSend: (reply: HttpReply, text: string) => void;
  /** Answers with what went wrong. */
  readonly fail: (thrown: unknown, reply: HttpReply) => void;
}

/** Unlike Node's own, it can still change as a whole until it is sent: a failure may take its place. */
export class HttpReply {
  readonly request: HttpRequest;
  readonly raw: ServerResponse;
  /** All of it is sent, or somebody else sends it. */
  isOver = false;
  readonly #headers: Record<string, string> = {};
  readonly #parts: ReplyParts;
  readonly #since = performance.now();

  constructor(request: HttpRequest, raw: ServerResponse, parts: ReplyParts) {
    this.request = request;
    this.raw = raw;
    this.#parts = parts;
  }

  /** Since the request arrived. */
  get elapsedMs(): number {
    return performance.now() - this.#since;
  }

  /** Those that are set so far, by their names in lower case. */
  get headers(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  set(headers: Readonly<Record<string, string>>): this {
    Object.assign(this.#headers, headers);
    return this;
  }

  header(name: string, value: string): this {
    this.#headers[name] = value;
    return this;
  }

  code(status: number): this {
    this.raw.statusCode = status;
    return this;
  }

  /** From now on the caller of this writes to `raw` by itself. */
  handOver(): void {
    this.isOver = true;
  }

  /** Sends text, bytes or a stream of them as they are, and anything else as JSON; without a payload, the head alone. */
  send(payload?: unknown): this {
    if (payload instanceof Readable) return this.#pipe(payload);
    const { raw, request } = this;
    const headers = this.#headers;
    let body: string | Buffer | undefined;
    if (payload === undefined || typeof payload === "string" || Buffer.isBuffer(payload)) body = payload;
    else {
      body = JSON.stringify(payload);
      headers["content-type"] ??= "application/json; charset=utf-8";
    }
    if (typeof body === "string") this.#parts.beforeSend(this, body);
    if (body !== undefined) headers["content-length"] = String(Buffer.byteLength(body));
    else if (!bodiless.has(raw.statusCode) && request.method !== "HEAD") headers["content-length"] = "0";
    raw.writeHead(raw.statusCode, headers);
    this.isOver = true;
    raw.end(body);
    return this;
  }

  /** The head leaves with the first piece: what fails before is told by a status, what fails later cuts the answer. */
  #pipe(stream: Readable): this {
    const { raw } = this;
    this.isOver = true;
    // If the caller left meanwhile, its `close` event is past.
    if (raw.destroyed) {
      stream.destroy();
      return this;
    }
    for (const [name, value] of Object.entries(this.#headers)) raw.setHeader(name, value);
    stream.once("error", (thrown) => {
      if (raw.headersSent) raw.destroy();
      else this.#parts.fail(thrown, this);
    });
    raw.once("close", () => stream.destroy());
    stream.pipe(raw);
    return this;
  }
}

/** The statuses of answers that never have a body. */
const bodiless: ReadonlySet<number> = new Set([204, 304]);
