/** Faults: at the n-th call of the store, at the n-th step of the adapter, or a caller that disconnects. */
import { setImmediate as hop } from "node:timers/promises";
import type { Delta } from "../../../src/core/delta.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Peers } from "../../../src/core/peers.ts";
import type { Adapter } from "../../../src/core/ports.ts";
import type { SessionStore } from "../../../src/core/store.ts";
import type { Turn } from "../../../src/core/turn.ts";

/** Where something fails, and how. */
export const kinds = {
  store: ["refuses", "loses its answer", "breaks", "is slow to begin", "is slow to answer", "is away from then on"],
  adapter: ["throws", "breaks", "hangs", "says nothing", "ends early"],
  /** Before anything, or after so many events. */
  caller: ["aborts", "returns", "returns while it waits", "aborts and returns"],
  /** Of the waiting callers, while the store is called. */
  "oldest caller": ["aborts", "returns", "aborts and returns"],
  "newest caller": ["aborts"],
} as const;

export type Where = keyof typeof kinds;
export type How = (typeof kinds)[Where][number];

export interface Trouble {
  /** Counts the calls there, and returns the fault that is due now, if any. */
  due(where: Where): How | undefined;
  /** Whether the fault has occurred. */
  readonly hasStruck: boolean;
  /** From then on nothing fails any more. */
  heal(): void;
}

export function createTrouble(where: Where, how: How, at: number): Trouble {
  let count = 0;
  let isOver = false;
  return {
    due(here) {
      if (isOver || here !== where) return undefined;
      count++;
      return count === at || (count > at && how === "is away from then on") ? how : undefined;
    },
    get hasStruck() {
      return count >= at;
    },
    heal() {
      isOver = true;
    },
  };
}

/** Two faults, each at its own time. */
export function both(one: Trouble, other: Trouble): Trouble {
  return {
    due(where) {
      const [first, second] = [one.due(where), other.due(where)];
      return first ?? second;
    },
    get hasStruck() {
      return one.hasStruck && other.hasStruck;
    },
    heal() {
      one.heal();
      other.heal();
    },
  };
}

export async function wait(hops: number): Promise<void> {
  for (let left = hops; left > 0; left--) await hop();
}

/** Longer than several turns together. */
const slowHops = 30;

const isAway = (): GatewayError => new GatewayError("store_unavailable", "The store is away for a moment.");
const isBroken = (): Error => new Error("broken on purpose");

/** Does the work, with the fault. */
async function strike(how: How | undefined, work: () => Promise<unknown>): Promise<unknown> {
  switch (how) {
    case "refuses":
    case "is away from then on":
      throw isAway();
    case "breaks":
      throw isBroken();
    case "loses its answer": {
      const result = await work();
      // A name that nobody can release expires by itself.
      if (typeof result === "function") result();
      throw isAway();
    }
    case "is slow to begin":
      await wait(slowHops);
      return work();
    case "is slow to answer": {
      const result = await work();
      await wait(slowHops);
      return result;
    }
    default:
      return work();
  }
}

/** Called for each call, with its fault. */
type OnCall = (name: string, how: How | undefined) => void;

/** A store with faults, whose peers, if it has some, have the same faults. */
export function createTroubledStore(store: SessionStore, trouble: Trouble, onCall: OnCall): SessionStore {
  const peers = store.peers && withTrouble(store.peers, trouble, onCall);
  return { ...withTrouble(store, trouble, onCall), peers };
}

/** None of these is a call that a turn waits for. */
const immediate: readonly (keyof SessionStore | keyof Peers)[] = [
  "exportRecords",
  "close",
  "publish",
  "subscribe",
  "shareUse",
  "onCancel",
];
const untouched = new Set<string>(immediate);

function withTrouble<Some extends object>(some: Some, trouble: Trouble, onCall: OnCall): Some {
  const entries = Object.entries(some).map(([name, value]): [string, unknown] => {
    if (typeof value !== "function" || untouched.has(name)) return [name, value];
    const call = async (...given: unknown[]): Promise<unknown> => {
      const how = trouble.due("store");
      onCall(name, how);
      return strike(how, async () => Reflect.apply(value, some, given));
    };
    return [name, call];
  });
  return { ...some, ...Object.fromEntries(entries) };
}

export interface AdapterParts {
  readonly trouble: Trouble;
  readonly script: (turn: Turn) => readonly (readonly Delta[])[];
  asked(turn: Turn): void;
  said(turn: Turn, batch: readonly Delta[]): void;
  /** A fault occurs now. */
  struck(how: How): void;
  /** It emits nothing more until it is aborted. */
  hangs(turn: Turn): void;
}

/** Answers by its script, except for the faults. */
export function createTroubledAdapter({ trouble, script, asked, said, struck, hangs }: AdapterParts): Adapter {
  /** A step; false: it is the last. */
  async function* step(turn: Turn, signal: AbortSignal): AsyncGenerator<readonly Delta[], boolean> {
    await hop();
    signal.throwIfAborted();
    const how = trouble.due("adapter");
    if (how !== undefined) struck(how);
    switch (how) {
      case "throws":
        throw new GatewayError("adapter_error", "The model failed.");
      case "breaks":
        throw isBroken();
      case "ends early":
        return false;
      case "says nothing":
        yield [];
        return true;
      case "hangs":
        hangs(turn);
        return whenAborted(signal);
      default:
        return true;
    }
  }

  return {
    async *stream(turn, signal) {
      asked(turn);
      for (const batch of [...script(turn), undefined]) {
        if (!(yield* step(turn, signal)) || batch === undefined) return;
        said(turn, batch);
        yield batch;
      }
    },
    async countTokens(turn, signal) {
      for await (const _ of step(turn, signal));
      return turn.items.length;
    },
  };
}

function whenAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
