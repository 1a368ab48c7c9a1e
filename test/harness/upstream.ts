/** A loopback server that acts as an upstream: it answers by a script, and records what it received. */
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** Found to be unknown without a network, too: no resolver is asked for a label of more than 63 characters. */
export const unknownHost = `${"x".repeat(64)}.invalid`;

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  /** The body's text, and the same parsed when it is JSON. */
  readonly text: string;
  readonly json: unknown;
}

/** Called with the request when its body is read; writes the answer. */
export type Script = (received: Received, response: ServerResponse) => void | Promise<void>;

export interface ScriptedUpstream extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, or `unix:/path` when it listens there. */
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** Every connection that was ever made to it. */
  readonly sockets: readonly Socket[];
  /** What it answers from now on. */
  script: Script;
  close(): Promise<void>;
}

/** Listens on a free port, or on a socket path. */
export async function startUpstream(
  script: Script = (_, response) => void response.end(),
  path?: string,
): Promise<ScriptedUpstream> {
  const received: Received[] = [];
  const sockets: Socket[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString("utf8");
      const { method = "", url = "", headers } = request;
      const one = { method, path: url, headers, text, json: text.startsWith("{") ? JSON.parse(text) : undefined };
      received.push(one);
      void upstream.script(one, response);
    });
  });
  // Otherwise a connection may be closed in the moment in which it is used again.
  server.keepAliveTimeout = 0;
  server.on("connection", (socket: Socket) => sockets.push(socket));
  server.listen(path === undefined ? { port: 0, host: "127.0.0.1" } : { path });
  await once(server, "listening");
  const port = path === undefined ? (server.address() as AddressInfo).port : 0;
  const upstream: ScriptedUpstream = {
    url: path === undefined ? `http://127.0.0.1:${port}` : `unix:${path}`,
    port,
    received,
    sockets,
    script,
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
    [Symbol.asyncDispose]: () => upstream.close(),
  };
  return upstream;
}

/** A script that answers with JSON. */
export function answerJson(body: unknown, status = 200, headers: Record<string, string> = {}): Script {
  return (_, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(body));
  };
}

/** A script that answers with server-sent events, `[DONE]` last; strings are sent unchanged, all else as JSON. */
export function answerEvents(...events: readonly unknown[]): Script {
  return (_, response) => {
    beginEvents(response);
    for (const event of [...events, "[DONE]"]) writeEvent(response, event);
    response.end();
  };
}

export function beginEvents(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
}

export function writeEvent(response: ServerResponse, event: unknown): boolean {
  return response.write(`data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
}

/** A chat completions chunk with one choice. */
export function chunk(delta: unknown, finish: string | null = null, more: Record<string, unknown> = {}): unknown {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish, ...more }],
  };
}
