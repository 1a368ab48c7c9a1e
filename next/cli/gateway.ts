/** The running gateway as a client sees it: whether it is there, and its answers over HTTP or a unix socket. */
import { once } from "node:events";
import type { IncomingMessage, RequestOptions } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { json } from "node:stream/consumers";
import { type Config, hasListener, type HttpConfig } from "../config/config.ts";
import { lockPath } from "../store/file.ts";
import { primary, primaryOf } from "../store/trouble.ts";

export interface Asked extends Pick<RequestOptions, "method" | "headers" | "signal"> {
  readonly path: string;
  readonly body?: string | undefined;
}

/** Resolves with the head of the answer; aborting disconnects, and the gateway cancels the turn. */
export async function ask(address: string, { path, body, ...options }: Asked): Promise<IncomingMessage> {
  // Loading the platform's fetch, or node:http itself, takes a tenth of a start.
  const { request } = process.getBuiltinModule(address.startsWith("https:") ? "node:https" : "node:http");
  const common = { ...options, agent: false } as const;
  const asking = address.startsWith("unix:")
    ? request({ ...common, socketPath: address.slice("unix:".length), path })
    : request(`${address}${path}`, common);
  asking.end(body);
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  return response;
}

/** An absent server is noticed at once; a busy machine may take its time to answer. */
const probeMs = 1_000;

/** The JSON that a URL returns within a second, if any. */
export async function readJson(url: string): Promise<unknown> {
  try {
    const { origin, pathname } = new URL(url);
    return await readAnswer(origin, { path: pathname, signal: AbortSignal.timeout(probeMs) });
  } catch {
    // Nobody is there, or somebody else.
    return undefined;
  }
}

async function readAnswer(address: string, asked: Asked): Promise<unknown> {
  const response = await ask(address, asked);
  if (response.statusCode === 200) return json(response);
  response.destroy();
  return undefined;
}

/** Our gateway's address, if it answers there. Whoever merely has its port is sent no token, and no word. */
export async function findGateway({ http, storeFile }: Config): Promise<string | undefined> {
  if (!hasListener(http) || !isHeld(storeFile)) return undefined;
  const address = toAddress(http);
  const signal = AbortSignal.timeout(probeMs);
  const health = await readAnswer(address, { path: "/healthz", signal }).catch(() => undefined);
  return JSON.stringify(health) === '{"status":"ok"}' ? address : undefined;
}

/** Whether a gateway has the store, which it locks as long as it lives. */
export function isHeld(storeFile: string): boolean {
  try {
    const lock = new DatabaseSync(lockPath(storeFile), { readOnly: true, timeout: 0 });
    try {
      lock.prepare("SELECT count(*) FROM sqlite_schema").get();
    } finally {
      lock.close();
    }
    return false;
  } catch (thrown) {
    return primaryOf(thrown) === primary.busy;
  }
}

/** How this machine reaches a listener. */
export function toAddress({ bind, port }: Pick<HttpConfig, "bind" | "port">): string {
  if (bind.startsWith("unix:")) return bind;
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[bind] ?? bind;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
