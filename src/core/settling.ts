/** How a turn ends: it is kept at its place or given up, and its place is left for whoever comes next. */
import { callerLeft, GatewayError, toGatewayError } from "./errors.ts";
import type { Ending } from "./frame/frame.ts";
import type { Caller, GatewayParts } from "./gateway.ts";
import type { Item } from "./item.ts";
import { keepLone, type Keepsake, toCommit, toTurn, whyNotKept } from "./keep.ts";
import type { Chain } from "./place/chain.ts";
import { extend } from "./place/path.ts";
import type { Place } from "./place/place.ts";
import type { Ask } from "./turn.ts";

/** A turn that has its place. */
export interface PlacedTurn {
  readonly ask: Ask<Item>;
  readonly caller: Caller;
  readonly place: Place;
  readonly keepsake: Keepsake;
  /** The store keeps what comes of it. */
  readonly isKept: boolean;
  /** The store has it already, as running. */
  readonly isBegun: boolean;
  /** Gives its place back. */
  readonly leave: () => void;
  /** It is over. */
  readonly finish: () => void;
}

export interface SettlingParts extends Pick<GatewayParts, "store" | "limits" | "now"> {
  readonly chain: Chain;
}

export interface Settling extends Ending {
  /** Nobody wants more of it. */
  leaveEarly(): void;
}

export function createSettling({ store, limits, now, chain }: SettlingParts, turn: PlacedTurn): Settling {
  const { ask, caller, place, keepsake, isKept, isBegun, leave, finish } = turn;
  const { signal, key, memory } = caller;
  let hasLeft = false;
  let isSettling = false;
  return {
    async settle(answer) {
      signal.throwIfAborted();
      if (hasLeft) throw callerLeft();
      isSettling = true;
      if (!isKept) return memory?.keep(extend(place.path, toTurn(chain, keepsake, place, answer)));
      const commit = toCommit(chain, keepsake, place, answer, limits().maxTurnsPerThread);
      const kept = await store.commit({ ...commit, key: isBegun ? undefined : key, begun: isBegun });
      if (!kept) throw await whyNotKept(store, place);
    },
    async abandon(answer) {
      const isLeft = answer.error?.code === "client_closed";
      const told = isLeft ? ({ ...answer, status: "cancelled", error: undefined } as const) : answer;
      // What was told by name can be named by whoever heard it, even when no thread goes on from there.
      if (!isBegun && !isNamed(turn)) return;
      // A store that fails now, and later too, leaves a turn that it knows as running, and that is told as interrupted.
      await keepLone(store, keepsake, place, told, isBegun).catch(() => {});
    },
    // When the turn was called off, why it was says more than what broke because of it.
    explain: (thrown) => nameParam(ask, toGatewayError(signal.aborted ? signal.reason : thrown)),
    leave() {
      leave();
      finish();
    },
    leaveEarly() {
      hasLeft = true;
      // What is just being kept has its place until it is: whoever comes next goes on from it.
      if (!isSettling) leave();
    },
    now,
  };
}

/** Others may name it, and its items, when it is over. */
export function isNamed({ isKept, caller }: Pick<PlacedTurn, "isKept" | "caller">): boolean {
  return isKept && caller.memo !== undefined;
}

/** An adapter knows which part it refuses, and the request where that part stands. */
function nameParam({ pathOf, itemsParam }: Ask<Item>, failure: GatewayError): GatewayError {
  const { code, message, part, wireCode, retryAfterSeconds, cause } = failure;
  if (part === undefined) return failure;
  return new GatewayError(code, message, { param: pathOf?.(part) ?? itemsParam, wireCode, retryAfterSeconds, cause });
}
