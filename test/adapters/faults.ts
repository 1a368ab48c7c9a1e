/**
 * An upstream that fails in every possible way, on bare sockets, so that the test controls every byte and every end.
 */
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";

export type Wire = "chat" | "responses";

/** What the upstream was asked, and how to answer it. */
export interface Asked {
  readonly wire: Wire;
  readonly stream: boolean;
  readonly model: string;
  /** The messages that it received, as `role: text`. */
  readonly shown: readonly string[];
  readonly socket: Socket;
  /** Resolves when the caller has read the beginning of its answer; at once when it waits for a whole one. */
  readonly received: Promise<void>;
}

/**
 * Fails; the number is how many milliseconds after the request the gateway may take to notice, if it is a matter of
 * time.
 */
export type Fault = (asked: Asked) => number | void | Promise<void>;

export interface Faulty extends AsyncDisposable {
  readonly port: number;
  readonly asked: readonly Asked[];
  /** When the failure of the turn with this text could be noticed. */
  brokeAt(text: string): number;
}

/** Answers models that have no fault with the word `well`. */
export async function startFaulty(
  faultOf: (model: string) => Fault | undefined,
  receivedBy: (text: string) => Promise<void>,
): Promise<Faulty> {
  const asked: Asked[] = [];
  const moments = new Map<string, number>();
  const sockets = new Set<Socket>();

  async function answer(one: Asked): Promise<void> {
    const began = performance.now();
    const delayMs = await (faultOf(one.model) ?? answerWell)(one);
    const text = one.shown.at(-1)?.replace("user: ", "") ?? "";
    moments.set(text, typeof delayMs === "number" ? began + delayMs : performance.now());
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    let received = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      received = Buffer.concat([received, bytes]);
      const end = received.indexOf("\r\n\r\n");
      const head = received.toString("latin1", 0, end);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (end === -1 || received.length < end + 4 + length) return;
      const body = JSON.parse(received.toString("utf8", end + 4, end + 4 + length)) as Body;
      received = received.subarray(end + 4 + length);
      const wire: Wire = head.includes("/responses ") ? "responses" : "chat";
      const { model, stream = false } = body;
      const shown = (body.messages ?? body.input ?? []).map(({ role, content }) => `${role}: ${textOf(content)}`);
      const text = shown.at(-1)?.replace("user: ", "") ?? "";
      const one = { wire, stream, model, shown, socket, received: stream ? receivedBy(text) : Promise.resolve() };
      asked.push(one);
      void answer(one);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    brokeAt: (text) => moments.get(text) ?? Number.NaN,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

interface Body {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages?: readonly Message[];
  readonly input?: readonly Message[];
}

interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly text: string }[];
}

function textOf(content: Message["content"]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("");
}

/** A head whose body ends with the connection. */
export function head(type: string, status = 200, more = ""): string {
  return `HTTP/1.1 ${status} Said\r\ncontent-type: ${type}\r\nconnection: close\r\n${more}\r\n`;
}

/** The head of a good answer. */
export function goodHead({ stream }: Asked): string {
  return head(stream ? "text/event-stream" : "application/json");
}

/** A piece of the answer: an event, or a document without its end. */
export function beginning(asked: Asked, text = "well"): string {
  const event = asked.wire === "chat" ? chunk({ content: text }, null) : delta(text);
  return asked.stream ? event : whole(asked, text).slice(0, -20);
}

/** The whole answer. */
export function all(asked: Asked, text = "well"): string {
  if (!asked.stream) return whole(asked, text);
  const end = asked.wire === "chat" ? `${chunk({}, "stop")}data: [DONE]\n\n` : `${completed(text)}data: [DONE]\n\n`;
  return beginning(asked, text) + end;
}

export function answerWell(asked: Asked): void {
  asked.socket.end(goodHead(asked) + all(asked));
}

function whole({ wire }: Asked, text: string): string {
  const message = { role: "assistant", content: text };
  return JSON.stringify(
    wire === "chat" ? { choices: [{ index: 0, message, finish_reason: "stop" }] } : responseOf(text),
  );
}

function chunk(words: object, finish: string | null): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: words, finish_reason: finish }] })}\n\n`;
}

function delta(text: string): string {
  return `data: ${JSON.stringify({ type: "response.output_text.delta", output_index: 0, delta: text })}\n\n`;
}

function completed(text: string): string {
  return `data: ${JSON.stringify({ type: "response.completed", response: responseOf(text) })}\n\n`;
}

function responseOf(text: string): object {
  const content = [{ type: "output_text", text }];
  return { status: "completed", output: [{ type: "message", role: "assistant", status: "completed", content }] };
}
