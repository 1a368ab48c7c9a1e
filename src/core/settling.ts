/** How a turn ends: settled, that is kept at its place, or abandoned; then its place is free for the next. */
import { callerLeft, GatewayError, toGatewayError } from "./errors.ts";
import type { Ending } from "./frame/frame.ts";
import type { Caller, GatewayParts } from "./gateway.ts";
import { type Item, isSteering } from "./item.ts";
import { type TurnRecord, toCommit, toTurn, toUnthreadedTurn } from "./turn-record.ts";
import type { Chain } from "./place/chain.ts";
import { extend } from "./place/path.ts";
import { noConversation, noPrevious, type Place } from "./place/place.ts";
import { rejoin } from "./place/shown.ts";
import type { SessionStore } from "./store.ts";
import type { Answer, Ask } from "./turn.ts";

/** A turn that has its place. */
export interface PlacedTurn {
  readonly ask: Ask<Item>;
  readonly caller: Caller;
  readonly place: Place;
  readonly turnRecord: TurnRecord;
  /** Its result is stored. */
  readonly isStored: boolean;
  /** Already in the store, as running. */
  readonly isBegun: boolean;
  /** Frees its place for the next turn; may be called again. */
  readonly leave: () => void;
  /** Leaves its place and tells whoever waits for the turn; may be called again. */
  readonly end: () => void;
}

export interface SettlingParts extends Pick<GatewayParts, "store" | "limits" | "now"> {
  readonly chain: Chain;
}

export interface Settling extends Ending {
  /** Nobody wants the rest: leaves the place before the turn has ended. */
  leave(): void;
}

export function createSettling({ store, limits, now, chain }: SettlingParts, turn: PlacedTurn): Settling {
  const { ask, caller, place, turnRecord, isStored, isBegun, leave, end } = turn;
  const { signal, key, memory } = caller;
  let state: "answering" | "settling" | "left" = "answering";
  return {
    async settle(answer) {
      signal.throwIfAborted();
      if (state === "left") throw callerLeft();
      state = "settling";
      if (!isStored) {
        if (memory === undefined) return;
        const told = { ...place, input: rejoin(place.base, place.input, isSteering) };
        // Nobody replays it, so only what was said is remembered, which is all that counts as held.
        const record = { ...turnRecord, isReplayable: false };
        return memory.keep(extend(place.path, toTurn(chain, record, told, answer)));
      }
      const commit = toCommit(chain, turnRecord, place, answer, limits());
      const kept = await store.commit({ ...commit, key: isBegun ? undefined : key, begun: isBegun });
      if (!kept) throw await whyNotStored(store, place);
    },
    async abandon(answer) {
      const isLeft = answer.error?.code === "client_closed";
      const told = isLeft ? ({ ...answer, status: "cancelled", error: undefined } as const) : answer;
      // A caller that was told the turn's id may retrieve it, even if no thread continues from it.
      if (!isBegun && !isNamed(turn)) return;
      // If the store fails now and later too, a turn stored as running stays so, and is reported as interrupted.
      await storeUnthreaded(store, turn, told).catch(() => {});
    },
    // If the turn was cancelled, the reason says more than the error it caused.
    explain: (thrown) => nameParam(ask, toGatewayError(signal.aborted ? signal.reason : thrown)),
    end,
    leave() {
      // A turn being committed keeps its place: whoever comes next continues from it.
      if (state === "settling") return;
      state = "left";
      leave();
    },
    now,
  };
}

/** Callers may refer to it and its items later. */
export function isNamed({ isStored, caller }: Pick<PlacedTurn, "isStored" | "caller">): boolean {
  return isStored && caller.memo !== undefined;
}

/** What the turn continues is gone, or something else was said after it while the turn ran. */
async function whyNotStored(store: SessionStore, { by, session, path }: Place): Promise<GatewayError> {
  const meanwhile = "was deleted while this turn ran, so the turn was not stored";
  if (by === "conversation" && session !== undefined && (await store.readSession(session.id)) === undefined) {
    return noConversation(session.id, meanwhile);
  }
  const previous = path.tip;
  if (by === "response" && previous && (await store.findTurn(previous.owner, previous.id)) === undefined) {
    return noPrevious(previous.id, meanwhile);
  }
  return new GatewayError(
    "session_busy",
    "The session changed while this turn ran, so the turn was not stored. Send it again.",
    { retryAfterSeconds: 1 },
  );
}

/** Stores a failed or cancelled turn. Nothing stays of one whose session was deleted meanwhile. */
async function storeUnthreaded(store: SessionStore, turn: PlacedTurn, answer: Answer): Promise<void> {
  const { session, base, input } = turn.place;
  const lone = toUnthreadedTurn(turn.turnRecord, rejoin(base, input, isSteering), answer);
  if (turn.isBegun) await store.end(lone);
  else await store.begin(lone);
  // Checked last: what is stored before its session is deleted goes with it.
  const isGone = session !== undefined && (await store.readSession(session.id)) === undefined;
  if (isGone) await store.deleteTurn(lone.owner, lone.id);
}

/** An adapter knows which part it refuses, and the request where that part stands. */
function nameParam({ pathOf, itemsParam }: Ask<Item>, failure: GatewayError): GatewayError {
  const { code, message, part, wireCode, retryAfterSeconds, cause } = failure;
  if (part === undefined) return failure;
  return new GatewayError(code, message, { param: pathOf?.(part) ?? itemsParam, wireCode, retryAfterSeconds, cause });
}
