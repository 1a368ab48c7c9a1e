/** The version of what is in Redis, and the secrets kept there. */
import { randomBytes } from "node:crypto";
import { GatewayError } from "../../core/errors.ts";
import type { Address } from "./address.ts";
import type { Reply } from "./script.ts";

/** The version that this program reads and writes. */
export const newestVersion = 1;

export interface Secrets {
  readonly hintKey: string;
  readonly idempotencyKey: string;
  /** How many changes there were. */
  readonly changes: number;
}

type Send = (...command: readonly string[]) => Promise<Reply>;

/** Marks a new store. Throws `store_unavailable` for one of a newer release, and leaves it as it was. */
export async function prepareStore(send: Send, key: (name: string) => string, address: Address): Promise<Secrets> {
  const find = () => send("GET", key("version"));
  // A Redis that is full refuses to set it even if it is there, and then nothing could be deleted.
  if ((await find()) === null) await send("SET", key("version"), String(newestVersion), "NX");
  const version = Number(await find());
  if (version !== newestVersion) {
    throw new GatewayError(
      "store_unavailable",
      `The session store ${address.shown} has schema version ${version}, and this release knows versions up to ${newestVersion}. Start the newer release that wrote it, or name another store, e.g. with ?prefix=NAME (gateway.sessions.store).`,
    );
  }
  const hintKey = await readSecret(send, key, "hint");
  const idempotencyKey = await readSecret(send, key, "idempotency");
  return { hintKey, idempotencyKey, changes: Number((await send("GET", key("changes"))) ?? 0) };
}

/** Created on first use, the same ever after. */
export async function readSecret(send: Send, key: (name: string) => string, name: string): Promise<string> {
  const find = () => send("HGET", key("secrets"), name);
  const found = await find();
  if (found !== null) return String(found);
  await send("HSETNX", key("secrets"), name, randomBytes(32).toString("base64url"));
  return String(await find());
}
