/** What the steps that are done to several stores know of them, and what is left to chance in each. */
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../src/core/store.ts";

/** The stores and what is known of them. */
export interface World {
  now(): Date;
  /** A name that nothing has yet. */
  fresh(kind: "conv" | "resp"): string;
  /** Every turn that was ever shown to the stores, as it was shown last. Some were refused, others are gone. */
  readonly turns: Map<string, StoredTurn>;
  readonly sessions: { readonly id: string; readonly owner: string }[];
  /** Of all that was there at some time. */
  archive: readonly ArchiveRecord[] | undefined;
  /** Does the same to every store. The answer is that of all of them; nothing if all refuse. */
  ask<T>(words: string, act: (store: SessionStore) => Promise<T>): Promise<T | undefined>;
}

/** What is left to chance in a step. */
export interface Chance {
  readonly owner: string;
  pick<T>(list: readonly T[]): T | undefined;
  /** The same of a few that are given by name. */
  choose<const T>(first: T, ...others: readonly T[]): T;
  oneIn(count: number): boolean;
}

/** Each choice takes its part of the salt. Of nothing that is left, the first is chosen, and what is rare does not happen. */
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

/** Mostly a young one, as most of what is done is done to these. */
export function pickTurn(
  { turns }: World,
  { pick, oneIn }: Chance,
  isWanted: (turn: StoredTurn) => boolean = () => true,
): StoredTurn | undefined {
  const wanted = [...turns.values()].filter(isWanted);
  return pick(oneIn(3) ? wanted : wanted.slice(-5).toReversed());
}
