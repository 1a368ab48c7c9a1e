/** The secrets that live and die with what is stored: the store's own, and those that came with archives. */
import { hash } from "node:crypto";
import { cold, type Tables, toNumber } from "./cold.ts";

export interface Secrets {
  /** The id of a session under a hint: of several that may be meant the first that exists, else the one that is made. */
  sessionOf(owner: string, hint: string): string | Promise<string>;
  /** Every id that a session under this hint may have. */
  sessionsOf(owner: string, hint: string): Promise<readonly string[]>;
  /** What stands for an owner's idempotency key. */
  nameKey(owner: string, key: string): string;
  /** The number by which turns of any session refer to the person whom this hint names. */
  personOf(owner: string, hint: string): number;
  /** That person's possible names, one for each hint key. */
  personsOf(owner: string, hint: string): Promise<readonly string[]>;
  /** The first one seals; the others only open. The same list until there are others. */
  sealKeys(): readonly Buffer[];
  /** Looks for those of an archive that was imported. */
  renew(): Promise<void>;
}

/** The store's own come first: a name is a kind, and what came with an archive has something behind it. */
export interface SecretLists {
  readonly hints: readonly string[];
  readonly seals: readonly string[];
}

/** So soon what the command line has imported beside us is known. */
export const renewalMs = 1_000;

/** `isThere`: whether a session with this id exists. */
export function createSecrets(
  first: SecretLists,
  read: () => Promise<SecretLists>,
  isThere: (id: string) => Promise<boolean>,
): Secrets {
  let lists = first;
  let sealKeys = toKeys(first);
  let renewedAt = performance.now();
  let renewing: Promise<void> | undefined;

  async function renew(): Promise<void> {
    renewedAt = performance.now();
    lists = await read();
    if (lists.seals.length !== sealKeys.length) sealKeys = toKeys(lists);
  }

  /** Undefined: they are not old. */
  function renewIfOld(): Promise<void> | undefined {
    if (renewing !== undefined || performance.now() - renewedAt <= renewalMs) return renewing;
    renewing = renew().finally(() => (renewing = undefined));
    return renewing;
  }

  const ownOf = (owner: string, hint: string) => toSessionId(lists.hints[0] ?? "", owner, hint);
  const allOf = (owner: string, hint: string) => lists.hints.map((key) => toSessionId(key, owner, hint));

  async function find(owner: string, hint: string): Promise<string> {
    for (const id of lists.hints.length === 1 ? [] : allOf(owner, hint)) if (await isThere(id)) return id;
    return ownOf(owner, hint);
  }

  return {
    sessionOf(owner, hint) {
      const renewed = renewIfOld();
      if (renewed !== undefined) return renewed.then(() => find(owner, hint));
      return lists.hints.length === 1 ? ownOf(owner, hint) : find(owner, hint);
    },
    async sessionsOf(owner, hint) {
      await renew();
      return allOf(owner, hint);
    },
    nameKey: (owner, key) => ownOf(owner, `key ${key}`),
    personOf: (owner, hint) => toNumber(toName(ownOf(owner, `person ${hint}`))),
    async personsOf(owner, hint) {
      await renew();
      return allOf(owner, `person ${hint}`).map(toName);
    },
    sealKeys() {
      // Whoever opens a seal cannot wait; those of an archive are known a moment later.
      void renewIfOld()?.catch(() => {});
      return sealKeys;
    },
    renew,
  };
}

export async function readSecrets({ all }: Pick<Tables, "all">): Promise<SecretLists> {
  const read = async (kind: string) =>
    (await all<{ readonly value: string }>(cold.secrets, kind, `${kind};`)).map(({ value }) => value);
  return { hints: await read("hints"), seals: await read("seals") };
}

const toName = (id: string): string => id.slice("conv_".length);

const toKeys = ({ seals }: SecretLists): readonly Buffer[] => seals.map((key) => Buffer.from(key, "hex"));

/** One hash of a secret of fixed length and the name costs a quarter of an HMAC; cut off, nothing can be appended to it. */
function toSessionId(key: string, owner: string, hint: string): string {
  return `conv_${hash("sha256", `${key}${owner.length} ${owner}${hint}`).slice(0, 48)}`;
}
