/** The secrets that live and die with what is stored: the store's own, and those that came with archives. */
import { hash } from "node:crypto";
import { cold, type Tables } from "./cold.ts";

export interface Secrets {
  /** The id of a session under a hint: of several that may be meant the first that exists, else the one that is made. */
  sessionOf(owner: string, hint: string): string;
  /** Every id that a session under this hint may have. */
  sessionsOf(owner: string, hint: string): readonly string[];
  /** The first one seals; the others only open. The same list until there are others. */
  sealKeys(): readonly Buffer[];
  /** Looks for those of an archive that was imported. */
  renew(): void;
}

/** So soon what the command line has imported beside us is known. */
export const renewalMs = 1_000;

export function createSecrets({ all }: Tables, isThere: (id: string) => boolean): Secrets {
  let hintKeys: readonly string[] = [];
  let sealKeys: readonly Buffer[] = [];
  let renewedAt = 0;
  renew();

  function renew(): void {
    renewedAt = performance.now();
    hintKeys = readSecrets(all, "hints");
    const found = readSecrets(all, "seals");
    if (found.length !== sealKeys.length) sealKeys = found.map((key) => Buffer.from(key, "hex"));
  }

  function renewIfOld(): void {
    if (performance.now() - renewedAt > renewalMs) renew();
  }

  const sessionsOf = (owner: string, hint: string) => hintKeys.map((key) => toSessionId(key, owner, hint));

  return {
    sessionOf(owner, hint) {
      renewIfOld();
      const own = toSessionId(hintKeys[0] ?? "", owner, hint);
      if (hintKeys.length === 1 || isThere(own)) return own;
      return sessionsOf(owner, hint).find(isThere) ?? own;
    },
    sessionsOf(owner, hint) {
      renew();
      return sessionsOf(owner, hint);
    },
    sealKeys() {
      renewIfOld();
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
