/** The tokens that the reader has entered. They last as long as the browser's tab, and no server sees them in a URL. */
import { ask, Refusal } from "./api.js";

/**
 * What a token may open: the operator's routes, or the endpoints.
 * @typedef {"operator" | "endpoints"} Door
 */

/** @type {readonly (readonly [Door, string])[]} */
const doors = [
  ["operator", "operator/sessions?limit=1"],
  ["endpoints", "v1/models"],
];

/**
 * @param {Door} door
 * @returns {string | undefined}
 */
export function findToken(door) {
  return sessionStorage.getItem(`portico ${door}`) ?? undefined;
}

/**
 * Keeps a token for all that it opens, and returns what that is. Throws if it is invalid.
 * @param {string} token
 * @returns {Promise<readonly Door[]>}
 */
export async function enter(token) {
  /** @type {Door[]} */
  const opened = [];
  // In sequence: failed attempts are counted, and one is enough to know.
  for (const [door, path] of doors) if (await opens(path, token)) opened.push(door);
  for (const door of opened) sessionStorage.setItem(`portico ${door}`, token);
  return opened;
}

/** A link may bring a token behind its `#`, where no server sees it: it is taken out of the address. */
export function takeToken() {
  if (!location.hash.startsWith(inLink)) return undefined;
  const token = location.hash.slice(inLink.length);
  history.replaceState(undefined, "", location.pathname);
  return token;
}

const inLink = "#token=";

/**
 * Forgets a token wherever it was kept, or all of them.
 * @param {string} [token]
 */
export function leave(token) {
  for (const [door] of doors) {
    if (token === undefined || findToken(door) === token) sessionStorage.removeItem(`portico ${door}`);
  }
}

/**
 * Whether a token is accepted, whatever then becomes of the request.
 * @param {string} path
 * @param {string} token
 */
async function opens(path, token) {
  try {
    await ask(path, token);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof Refusal) || thrown.status === 401 || thrown.status === 429) throw thrown;
    return thrown.status !== 403;
  }
}
