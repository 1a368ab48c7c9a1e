/** The secrets that live and die with what is stored: the store's own, and those that came with archives. */
import { hash } from "node:crypto";
import type { Prepare } from "./prepared.ts";

export interface Secrets {
  /**
   * The id of a session under a hint: of several that may be meant the first that exists, or else the one that is made.
   * Where nothing is known the keys are read anew, for the command line may have imported some beside us.
   */
  sessionOf(owner: string, hint: string): string;
  /** Every id that a session under this hint may have. */
  sessionsOf(owner: string, hint: string): readonly string[];
  /** The first one seals; the others only open. The same list until there are others. */
  sealKeys(): readonly Buffer[];
  /** Looks for those of an archive that was imported. */
  renew(): void;
}

/** Names of secrets are kinds: the store's own has nothing behind it, and so comes first. */
const readStatement = "SELECT value FROM secret WHERE name >= ? AND name < ? ORDER BY name";

export function createSecrets(prepare: Prepare, isThere: (id: string) => boolean, now: () => number): Secrets {
  let hintKeys = readSecrets(prepare, "hints");
  let seals = readSecrets(prepare, "seals");
  let sealKeys = toBytes(seals);
  let sealsReadAt = now();

  function renewSeals(): void {
    const found = readSecrets(prepare, "seals");
    sealsReadAt = now();
    if (found.length === seals.length) return;
    seals = found;
    sealKeys = toBytes(found);
  }

  return {
    sessionOf(owner, hint) {
      const own = toSessionId(hintKeys[0] ?? "", owner, hint);
      if (isThere(own)) return own;
      hintKeys = readSecrets(prepare, "hints");
      const ids = hintKeys.map((key) => toSessionId(key, owner, hint));
      return ids.find(isThere) ?? ids[0] ?? own;
    },
    sessionsOf(owner, hint) {
      hintKeys = readSecrets(prepare, "hints");
      return hintKeys.map((key) => toSessionId(key, owner, hint));
    },
    sealKeys() {
      if (now() - sealsReadAt > renewalMs) renewSeals();
      return sealKeys;
    },
    renew() {
      hintKeys = readSecrets(prepare, "hints");
      renewSeals();
    },
  };
}

const renewalMs = 1_000;

/** The store's own comes first. */
export function readSecrets(prepare: Prepare, kind: "hints" | "seals"): readonly string[] {
  return prepare(readStatement)
    .all(kind, `${kind};`)
    .map((row) => String(row["value"]));
}

/** One hash of a secret of fixed length and the name is a quarter of the price of an HMAC; cut off, nothing can be appended to it. */
function toSessionId(key: string, owner: string, hint: string): string {
  return `conv_${hash("sha256", `${key}${owner.length} ${owner}${hint}`).slice(0, 48)}`;
}

const toBytes = (keys: readonly string[]): readonly Buffer[] => keys.map((key) => Buffer.from(key, "hex"));
