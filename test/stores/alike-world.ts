/** What the operations on several stores know of them, and the random choices of each. */
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../src/core/store.ts";

/** The stores and what is known of them. */
export interface World {
  now(): Date;
  /** An id that is not in use yet. */
  fresh(kind: "conv" | "resp"): string;
  /** Every turn that was ever passed to the stores, in its last version. Some were refused, others are deleted. */
  readonly turns: Map<string, StoredTurn>;
  readonly sessions: { readonly id: string; readonly owner: string }[];
  /** Of everything that existed at some time. */
  archive: readonly ArchiveRecord[] | undefined;
  /** Does the same to every store. Returns the answer that all of them give; undefined if all refuse. */
  ask<T>(words: string, act: (store: SessionStore) => Promise<T>): Promise<T | undefined>;
}

/** The random choices of an operation. */
export interface Chance {
  readonly owner: string;
  pick<T>(list: readonly T[]): T | undefined;
  /** The same for a few given values. */
  choose<const T>(first: T, ...others: readonly T[]): T;
  oneIn(count: number): boolean;
}

/** Each choice uses a part of the salt. Once it is used up, the first is chosen, and rare choices do not happen. */
export function toChance(owner: string, salt: number): Chance {
  let rest = salt;
  function roll(sides: number): number {
    const rolled = rest % sides;
    rest = Math.floor(rest / sides);
    return rolled;
  }
  return {
    owner,
    pick: (list) => (list.length === 0 ? undefined : list[roll(list.length)]),
    choose: (first, ...others) => [first, ...others][roll(others.length + 1)] ?? first,
    oneIn: (count) => roll(count) === count - 1,
  };
}

export const owners = ["alice", "bob"] as const;
export const hints = ["one", "two", "three"] as const;
export const digests = ["d1", "d2", "d3", "d4"] as const;
export const exchanges = ["x1", "x2"] as const;
export const keys = ["k1", "k2", "k3"] as const;

/** Usually a recent one, as most operations concern these. */
export function pickTurn(
  { turns }: World,
  { pick, oneIn }: Chance,
  isWanted: (turn: StoredTurn) => boolean = () => true,
): StoredTurn | undefined {
  const wanted = [...turns.values()].filter(isWanted);
  return pick(oneIn(3) ? wanted : wanted.slice(-5).toReversed());
}
