/** A WebSocket client for tests: sends create frames, and returns the events as they arrive. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { WebSocket } from "ws";
import { authorization, type Scope } from "./house.ts";

export interface ServerFrame {
  readonly type: string;
  readonly sequence_number?: number;
  readonly delta?: string;
  readonly status?: number;
  readonly error?: {
    readonly code: string;
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
  };
  readonly response?: {
    readonly id: string;
    readonly status: string;
    readonly output: readonly unknown[];
    readonly previous_response_id: string | null;
    readonly usage: { readonly total_tokens: number } | null;
    readonly error: { readonly code: string } | null;
  };
  readonly stream_id?: string;
}

export interface Client {
  readonly socket: WebSocket;
  /** Every received frame, as text. */
  readonly received: string[];
  send(frame: object | string): void;
  create(fields?: object): void;
  /** Resolves when the gateway has received everything that was sent. */
  flushed(): Promise<void>;
  next(): Promise<ServerFrame>;
  /** All frames up to the one that ends a response, or an error outside of one. */
  answer(): Promise<readonly ServerFrame[]>;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

const ends = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

export async function dial(context: Scope, address: string, headers: object = { authorization }): Promise<Client> {
  const socket = new WebSocket(toSocketUrl(address), { headers: { ...headers } });
  context.after(() => socket.terminate());
  const received: string[] = [];
  const unread: ServerFrame[] = [];
  let news = Promise.withResolvers<void>();
  socket.on("message", (bytes) => {
    received.push(String(bytes));
    unread.push(JSON.parse(String(bytes)) as ServerFrame);
    news.resolve();
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: String(reason) }));
  });
  async function next(): Promise<ServerFrame> {
    for (;;) {
      const frame = unread.shift();
      if (frame !== undefined) return frame;
      news = Promise.withResolvers();
      await news.promise;
    }
  }
  const send = (frame: object | string): void => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  await once(socket, "open");
  return {
    socket,
    received,
    send,
    create: (fields = {}) => send({ type: "response.create", model: "m", input: "hi", ...fields }),
    async flushed() {
      socket.ping();
      await once(socket, "pong");
    },
    next,
    async answer() {
      const frames: ServerFrame[] = [];
      for (;;) {
        const frame = await next();
        frames.push(frame);
        if (ends.has(frame.type)) return frames;
      }
    },
    closed,
  };
}

export interface Refusal {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly code: string;
}

/** How an upgrade is refused. */
export async function refusalOf(address: string, headers: object = { authorization }): Promise<Refusal> {
  const socket = new WebSocket(toSocketUrl(address), { headers: { ...headers } });
  const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
  let text = "";
  for await (const chunk of response) text += String(chunk);
  const { error } = JSON.parse(text) as { readonly error: { readonly code: string } };
  return { status: response.statusCode, headers: response.headers, code: error.code };
}

export function toSocketUrl(address: string): string {
  return `${address.replace("http", "ws")}/v1/responses`;
}

/** The text of these frames, joined. */
export function textOf(frames: readonly ServerFrame[]): string {
  return frames.map(({ delta }) => delta ?? "").join("");
}

export function idOf(frames: readonly ServerFrame[]): string {
  return frames.at(-1)?.response?.id ?? "none";
}
