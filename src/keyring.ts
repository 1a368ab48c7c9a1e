/** Seals and opens a gateway's texts, and opens those of a store whose archive was imported meanwhile. */
import type { SessionStore } from "./core/store.ts";
import type { SealOf } from "./protocols/responses/seal.ts";
import { createSeal } from "./seal.ts";

export interface Keyring {
  readonly sealOf: SealOf;
  /** Looks for keys that came with an archive; if it fails, it is tried again soon. */
  renew(): Promise<void>;
  close(): void;
}

/** Another process on the same store may import an archive without telling us. */
const usualIntervalMs = 10_000;

/** Reads the store's keys at once, then periodically. */
export async function openKeyring(
  store: Pick<SessionStore, "sealKeys">,
  intervalMs = usualIntervalMs,
): Promise<Keyring> {
  // If the store loses its key and makes another, texts sealed with this one are still in use.
  const [own] = await store.sealKeys();
  const look = async () => createSeal(toBytes(own), (await store.sealKeys()).map(toBytes));
  let current = await look();
  // If the store cannot be read, those who need it are told.
  async function renew(): Promise<void> {
    current = await look().catch(() => current);
  }
  const timer = setInterval(renew, intervalMs).unref();
  return {
    sealOf: (owner) => current(owner),
    renew,
    close: () => clearInterval(timer),
  };
}

function toBytes(key: string): Buffer {
  return Buffer.from(key, "base64url");
}
