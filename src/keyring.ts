/** What seals a gateway's texts and opens them again, also those of a store whose archive was taken in while it runs. */
import type { SessionStore } from "./core/store.ts";
import type { SealOf } from "./protocols/responses/seal.ts";
import { createSeal } from "./seal.ts";

export interface Keyring {
  readonly sealOf: SealOf;
  /** Looks for secrets that came with an archive. */
  renew(): Promise<void>;
  close(): void;
}

/** An archive may be taken in by another process on the same store, which tells nobody. */
const usualIntervalMs = 10_000;

/** Looks into the store at once, and again and again. */
export async function openKeyring(
  store: Pick<SessionStore, "sealKeys">,
  intervalMs = usualIntervalMs,
): Promise<Keyring> {
  // Even a store that has lost it, and made another one since, has given out what was sealed with the first.
  const [own] = await store.sealKeys();
  const look = async () => createSeal(toBytes(own), (await store.sealKeys()).map(toBytes));
  let current = await look();
  const renew = async () => {
    current = await look();
  };
  // A store that cannot be read says so to those who want something of it.
  const timer = setInterval(() => void renew().catch(() => {}), intervalMs).unref();
  return {
    sealOf: (owner) => current(owner),
    renew,
    close: () => clearInterval(timer),
  };
}

function toBytes(key: string): Buffer {
  return Buffer.from(key, "base64url");
}
