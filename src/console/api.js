/** Calls the gateway that served this page. Its refusals are in its own words. */

/** The gateway refused. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {string} code
   * @param {Headers} headers
   */
  constructor(message, status, code, headers) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** Nobody answered, or only a proxy in the gateway's place. */
export class Gone extends Error {
  constructor() {
    super("The gateway does not answer.");
  }
}

/**
 * A successful response. Paths are relative, as a proxy may serve the gateway under a path of its own.
 * @param {string} path
 * @param {string} [token]
 * @param {RequestInit} [request]
 * @returns {Promise<Response>}
 */
export async function ask(path, token, request = {}) {
  const headers = new Headers(request.headers);
  if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...request, headers, cache: "no-store" }).catch((thrown) => {
    throw request.signal?.aborted ? thrown : new Gone();
  });
  if (response.ok) return response;
  throw await readRefusal(response);
}

/**
 * @template Body
 * @param {string} path
 * @param {string} [token]
 * @param {RequestInit} [request]
 * @returns {Promise<Body>}
 */
export async function askJson(path, token, request) {
  return (await ask(path, token, request)).json();
}

/**
 * Whether turns can be taken now.
 * @typedef {object} Health
 * @property {"ready" | "not-ready" | "gone"} state
 * @property {string} words
 */

const healthMs = 5_000;

/** @returns {Promise<Health>} */
export async function readHealth() {
  try {
    await ask("readyz", undefined, { signal: AbortSignal.timeout(healthMs) });
    return { state: "ready", words: "Ready" };
  } catch (thrown) {
    if (thrown instanceof Refusal) return { state: "not-ready", words: thrown.message };
    return { state: "gone", words: "Does not answer" };
  }
}

/** @param {Response} response */
async function readRefusal(response) {
  const body = await response.json().catch(() => undefined);
  // The gateway always says why in this form; a proxy that cannot reach it uses another.
  if (body?.error === undefined && proxyStatuses.has(response.status)) return new Gone();
  const { message = `The answer was ${response.status}, without a reason.`, code = "" } = body?.error ?? {};
  return new Refusal(String(message), response.status, String(code), response.headers);
}

/** What proxies answer if they cannot reach a server. */
const proxyStatuses = new Set([502, 503, 504]);
