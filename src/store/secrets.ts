/** The secrets that live and die with what is stored: the store's own, and those that came with archives. */
import { hash } from "node:crypto";
import { cold } from "./cold.ts";
import type { Tables } from "./prepared.ts";

export interface Secrets {
  /**
   * The id of a session under a hint: of several that may be meant the first that exists, else the one that is made.
   * Where there is none the keys are read anew, for the command line may have imported some beside us.
   */
  sessionOf(owner: string, hint: string): string;
  /** Every id that a session under this hint may have. */
  sessionsOf(owner: string, hint: string): readonly string[];
  /** The first one seals; the others only open. The same list until there are others. */
  sealKeys(): readonly Buffer[];
  /** Looks for those of an archive that was imported. */
  renew(): void;
}

const renewalMs = 1_000;

export function createSecrets({ all }: Tables, isThere: (id: string) => boolean): Secrets {
  let hintKeys = readSecrets(all, "hints");
  let seals = readSecrets(all, "seals");
  let sealKeys = toBytes(seals);
  let renewedAt = performance.now();

  function sessionsOf(owner: string, hint: string): readonly string[] {
    hintKeys = readSecrets(all, "hints");
    return hintKeys.map((key) => toSessionId(key, owner, hint));
  }

  function renew(): void {
    renewedAt = performance.now();
    const found = readSecrets(all, "seals");
    if (found.length === seals.length) return;
    seals = found;
    sealKeys = toBytes(found);
  }

  return {
    sessionOf(owner, hint) {
      const own = toSessionId(hintKeys[0] ?? "", owner, hint);
      if (isThere(own)) return own;
      const ids = sessionsOf(owner, hint);
      return ids.find(isThere) ?? ids[0] ?? own;
    },
    sessionsOf,
    sealKeys() {
      if (performance.now() - renewedAt > renewalMs) renew();
      return sealKeys;
    },
    renew,
  };
}

/** The store's own comes first: a name is a kind, and what came with an archive has something behind it. */
export function readSecrets(all: Tables["all"], kind: string): readonly string[] {
  return all<{ readonly value: string }>(cold.secrets, kind, `${kind};`).map(({ value }) => value);
}

/** One hash of a secret of fixed length and the name costs a quarter of an HMAC; cut off, nothing can be appended to it. */
function toSessionId(key: string, owner: string, hint: string): string {
  return `conv_${hash("sha256", `${key}${owner.length} ${owner}${hint}`).slice(0, 48)}`;
}

const toBytes = (keys: readonly string[]): readonly Buffer[] => keys.map((key) => Buffer.from(key, "hex"));
