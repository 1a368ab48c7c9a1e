/** The running gateway as a client sees it: whether it is there, and its answers over HTTP or a unix socket. */
import { once } from "node:events";
import { realpathSync } from "node:fs";
import type { IncomingMessage, RequestOptions } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { type Config, hasListener, type HttpConfig } from "../config/config.ts";
import { lockPath } from "../store/file.ts";
import { fileOf } from "../store/open.ts";
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
  // What happens later, whoever reads the answer sees.
  asking.on("error", () => {});
  return response;
}

export async function readJson(response: IncomingMessage): Promise<unknown> {
  return JSON.parse((await response.setEncoding("utf8").toArray()).join(""));
}

/** An absent server is noticed at once; a busy machine may take its time to answer. */
const probeMs = 1_000;

/** The JSON that is there within a second, if any: nobody may be there, or somebody else. */
export async function probe(address: string, path = ""): Promise<unknown> {
  try {
    const response = await ask(address, { path, signal: AbortSignal.timeout(probeMs) });
    if (response.statusCode === 200) return await readJson(response);
    response.destroy();
  } catch {}
  return undefined;
}

/** Our gateway's address, if it answers there. Whoever merely has its port is sent no token, and no word. */
export async function findGateway({ http, store }: Config): Promise<string | undefined> {
  if (!hasListener(http) || !isHeld(store)) return undefined;
  const address = toAddress(http);
  const health = await probe(address, "/healthz");
  return JSON.stringify(health) === '{"status":"ok"}' ? address : undefined;
}

/** Whether a gateway may have the store: it locks a file as long as it lives. */
export function isHeld(store: string): boolean {
  const file = fileOf(store);
  if (file === undefined) return true;
  try {
    const lock = new DatabaseSync(lockPath(realpathSync(file)), { readOnly: true, timeout: 0 });
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
