/** A client that writes its bytes itself: half requests, wrong ones, several at once. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { authorization, type Scope } from "../harness/house.ts";

export interface Line {
  readonly socket: Socket;
  /** All that has come, once it matches; rejects if the connection ends before. */
  until(pattern: RegExp): Promise<string>;
  /** All that has come when the connection is closed. */
  readonly closed: Promise<string>;
}

/** Connects to a gateway, or to a unix socket; nothing is written yet. */
export async function dial(scope: Scope, address: string): Promise<Line> {
  const { hostname, port } = address.startsWith("/") ? { hostname: "", port: "" } : new URL(address);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const socket = port === "" ? connect({ path: address }) : connect({ port: Number(port), host });
  scope.after(() => socket.destroy());
  let heard = "";
  let news = Promise.withResolvers<void>();
  const tell = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  socket.setEncoding("utf8").on("data", (piece: string) => {
    heard += piece;
    tell();
  });
  const closed = new Promise<string>((resolve) => {
    socket
      .on("error", () => {})
      .on("close", () => {
        tell();
        resolve(heard);
      });
  });
  await once(socket, "connect");
  return {
    socket,
    closed,
    async until(pattern) {
      while (!pattern.test(heard)) {
        if (socket.closed) throw new Error(`It was closed after: ${heard}`);
        await news.promise;
      }
      return heard;
    },
  };
}

/** Sends bytes, and returns all that comes back until the gateway closes the connection. */
export async function exchange(scope: Scope, address: string, bytes: string | Buffer): Promise<string> {
  const line = await dial(scope, address);
  line.socket.write(bytes);
  return line.closed;
}

/** The head of a request; a header given as undefined is left out. */
export function head(
  target: string,
  headers: Readonly<Record<string, string | number | undefined>> = {},
  method = "POST",
): string {
  const usual = { host: "x", authorization, ...(method === "POST" && { "content-type": "application/json" }) };
  const lines = Object.entries({ ...usual, ...headers })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

/** A whole POST. */
export function post(target: string, body: string, headers: Readonly<Record<string, string | undefined>> = {}): string {
  return head(target, { "content-length": Buffer.byteLength(body), ...headers }) + body;
}

export const chat = "/v1/chat/completions";
export const hello = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
export const helloStreamed = JSON.stringify({ ...JSON.parse(hello), stream: true });

/** The statuses of the answers in what a connection has brought. */
export function statusesOf(heard: string): number[] {
  return [...heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

/** Waits for what no event tells, such as a line of the log, without keeping the processor busy. */
export async function eventually(isSo: () => boolean): Promise<void> {
  while (!isSo()) await pause(2);
}
