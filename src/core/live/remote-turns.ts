/**
 * Turns that run on a store shared by several gateways: others follow them as they are sent, or at the latest when they
 * end.
 */
import { GatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import { failedTurn } from "../frame/frame.ts";
import { createStreamTracker } from "../frame/stream-tracker.ts";
import { toAbandoned, interrupted, isExact, replayTurn, replayInBatches, toAnswer } from "../frame/replay.ts";
import { nameOfRun } from "../peers.ts";
import type { SessionStore, StoredTurn } from "../store.ts";

export interface RemoteTurns {
  /** Other gateways may want to follow a turn that runs here. */
  readonly hasPeers: boolean;
  /** Announces that a turn runs here, until the function is called. */
  announce(turnId: string, signal: AbortSignal): Promise<(() => void) | undefined>;
  /** Publishes what it says to the others. They learn its end from the store. */
  publish(turnId: string, events: readonly Event[]): void;
  /** The turn as it is now; if it runs, another gateway runs it, unless the store has no others. */
  refresh(turn: StoredTurn): Promise<StoredTurn | undefined>;
  /** Whether another gateway runs it. */
  isRunning(turn: StoredTurn): boolean;
  /** All its events, past and future. */
  follow(turn: StoredTurn, signal: AbortSignal): Events;
  /** Has a turn cancelled, wherever it runs, if it is meant. */
  cancel(owner: string, turnId: string, isMeant?: (turn: StoredTurn) => boolean): Promise<void>;
}

export interface RemoteTurnsParts {
  readonly store: SessionStore;
  readonly now: () => Date;
}

export function createRemoteTurns({ store, now }: RemoteTurnsParts): RemoteTurns {
  const { peers } = store;

  async function refresh(turn: StoredTurn): Promise<StoredTurn | undefined> {
    if (turn.status !== "running") return turn;
    if (peers !== undefined && (await peers.isTaken(nameOfRun(turn.id)))) return turn;
    // It may have ended since it was read.
    const current = await store.findTurn(turn.owner, turn.id);
    if (peers === undefined || current?.status !== "running") return current;
    // Its gateway is gone, and nobody else would ever end it.
    await store.end(toAbandoned(current, interrupted, now()));
    return store.findTurn(turn.owner, turn.id);
  }

  return {
    hasPeers: peers !== undefined,
    announce: async (turnId, signal) => peers?.enter(nameOfRun(turnId), signal),
    publish(turnId, events) {
      peers?.publish(
        nameOfRun(turnId),
        events.filter(({ type }) => type !== "turn-end"),
      );
    },
    refresh,
    isRunning: ({ status }) => status === "running" && peers !== undefined,
    async *follow({ owner, id }, signal) {
      const tracker = createStreamTracker();
      for await (const events of peers?.subscribe(nameOfRun(id), signal) ?? []) {
        tracker.accept(events);
        yield events;
      }
      const received = tracker.count;
      const found = await store.findTurn(owner, id);
      const turn = found && (await refresh(found));
      if (turn === undefined) {
        const gone = new GatewayError("not_found", `Response with id '${id}' not found.`);
        if (received === 0) throw gone;
        return yield tracker.finish(failedTurn(gone, now())[1].answer);
      }
      if (received === 0 && isSilent(turn)) throw toAnswer(turn).error ?? streamUnavailable();
      if (received === 0) return yield* replayInBatches(turn);
      const rest = replayTurn(turn).slice(received);
      if (rest.length > 0 && isExact(turn)) return yield rest;
      // A gateway that died says nothing more. A complete answer that is too long to be kept event by event must not be
      // reported as a failure, and one that still runs can be followed again.
      if (turn.status !== "failed" && turn.status !== "cancelled") throw streamUnavailable();
      yield tracker.finish(toAnswer(turn));
    },
    async cancel(owner, turnId, isMeant = () => true) {
      if (peers === undefined) return;
      const turn = await store.findTurn(owner, turnId);
      if (turn?.status === "running" && isMeant(turn)) await peers.cancel(nameOfRun(turnId), turnId);
    },
  };
}

/**
 * It failed before its first word, so whoever waits for that gets the failure. A background turn was already
 * acknowledged.
 */
function isSilent({ status, output, told }: StoredTurn): boolean {
  return status === "failed" && output.length === 0 && told?.background !== true;
}

function streamUnavailable(): GatewayError {
  return new GatewayError(
    "events_expired",
    "The rest of this answer's stream is not available. Retrieve the whole answer, or repeat a request with an idempotency key once its answer is complete.",
  );
}
