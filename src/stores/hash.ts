/** What is kept of a caller's own words: without the key that lives in the store nobody can tell, by trying, whose they are. */
import { createHmac, createSecretKey } from "node:crypto";

export type KeyedHash = (owner: string, words: string) => Buffer;

export function createKeyedHash(secret: Uint8Array): KeyedHash {
  // A key object is prepared once; from the plain bytes every hash would cost five times as much.
  const key = createSecretKey(secret);
  // A turn asks for the same hash when it looks for its session and again when it is kept, and so does the next one.
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
/** A caller's word may be as long as a request, and must not stay for it. */
const maxRecentLength = 200;
