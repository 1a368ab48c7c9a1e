/** Who answers at a gateway's address. */
import { createUpstream } from "../adapters/http/upstream.ts";
import { readWhole } from "../adapters/http/whole.ts";
import { isObject } from "../adapters/json.ts";
import type { HttpConfig } from "../config/config.ts";
import { codeOf, messageOf } from "../core/errors.ts";

type Found = "gateway" | "stranger" | "nobody";

const timeoutMs = 1_500;
/** What `/readyz` says grows with the adapters. */
const maxBytes = 65_536;

/** Asks for its health, which needs no token. Whoever is silent or answers otherwise is a stranger. */
export async function probeGateway(address: string): Promise<Found> {
  try {
    const { status, requestId, text } = await ask(address, "/healthz");
    return status === 200 && requestId.startsWith("req_") && text === '{"status":"ok"}' ? "gateway" : "stranger";
  } catch (thrown) {
    const cause = thrown instanceof Error ? thrown.cause : undefined;
    return nobodyThere.has(codeOf(cause)) ? "nobody" : "stranger";
  }
}

/** Why a gateway is not ready for turns, in its own words; undefined if it is. */
export async function whyNotReady(address: string): Promise<string | undefined> {
  try {
    const { status, text } = await ask(address, "/readyz");
    if (status === 200) return undefined;
    const body: unknown = JSON.parse(text);
    const error = isObject(body) ? body["error"] : undefined;
    return isObject(error) ? String(error["message"]) : `it answers with status ${status}`;
  } catch (thrown) {
    return messageOf(thrown);
  }
}

/** Whether a gateway knows a token. Sends a request that it refuses in any case, so that nothing happens. */
export async function knowsToken(address: string, token: string): Promise<boolean> {
  try {
    const { status, text } = await ask(address, "/v1/chat/completions", { authorization: `Bearer ${token}` });
    return status !== 401 && !text.includes('"too_many_failures"');
  } catch {
    // No answer is not a refusal.
    return true;
  }
}

async function ask(address: string, path: string, headers: Readonly<Record<string, string>> = {}) {
  const waits = { connectMs: timeoutMs, firstByteMs: timeoutMs, idleMs: timeoutMs };
  const upstream = createUpstream({ baseUrl: address, proxy: false, environment: {}, ...waits });
  const request = { method: "GET", path, headers, totalMs: timeoutMs } as const;
  try {
    const response = await upstream.send(request, new AbortController().signal);
    const text = await readWhole(response, maxBytes);
    return { status: response.status, requestId: String(response.headers["x-request-id"]), text };
  } finally {
    await upstream.close();
  }
}

const nobodyThere: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT", "ENOTSOCK", "EADDRNOTAVAIL"]);

/** How this machine reaches a listener. At port 0, which stands for any free one, nobody answers. */
export function toAddress({ bind, port }: HttpConfig): string {
  if (bind.startsWith("unix:")) return bind;
  const host = everyAddress.get(bind) ?? bind;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Wildcard addresses, each with one that can be reached. */
const everyAddress: ReadonlyMap<string, string> = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);
