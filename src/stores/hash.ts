/** Hashes callers' own words: without the key, which is in the store, nobody can find out by trying whose they are. */
import { createHmac, createSecretKey } from "node:crypto";

export type KeyedHash = (owner: string, words: string) => Buffer;

export function createKeyedHash(secret: Uint8Array): KeyedHash {
  // A key object is prepared once; from plain bytes, every hash would cost five times as much.
  const key = createSecretKey(secret);
  // A turn needs the same hash to find its session and again to be stored, and so does the next one.
  const recent = new Map<string, Buffer>();
  return (owner, words) => {
    const name = JSON.stringify([owner, words]);
    const known = recent.get(name);
    if (known !== undefined) return known;
    const hash = createHmac("sha256", key).update(name).digest();
    if (name.length > maxRecentLength) return hash;
    if (recent.size >= maxRecentHashes) recent.clear();
    recent.set(name, hash);
    return hash;
  };
}

const maxRecentHashes = 10_000;
/** Words may be as long as a request; long ones are not cached. */
const maxRecentLength = 200;
