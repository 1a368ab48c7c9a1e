/** Turns that do not run here: followed while another gateway on the same store runs them, else as they are stored. */
import { GatewayError } from "../errors.ts";
import type { Events } from "../event.ts";
import { failedTurn } from "../frame/frame.ts";
import { createStreamTracker } from "../frame/stream-tracker.ts";
import {
  toAbandoned,
  interrupted,
  isExact,
  replayInBatches,
  sizeOfReplay,
  toAbout,
  toAnswer,
} from "../frame/replay.ts";
import { nameOfRun } from "../peers.ts";
import type { Followable } from "./live-turn.ts";
import type { SessionStore, StoredTurn } from "../store.ts";

export interface RemoteTurns {
  /** A turn that is followed on its gateway while it runs, and replayed from the store afterwards. */
  find(owner: string, turnId: string): Promise<RemoteTurn | undefined>;
  /** Has a turn cancelled, wherever it runs, if it is meant. */
  cancel(owner: string, turnId: string, isMeant?: (turn: StoredTurn) => boolean): Promise<void>;
}

/** A turn that does not run here. */
export interface RemoteTurn extends Followable {
  readonly turn: StoredTurn;
  /** Another gateway runs it; a turn stored as running that nobody runs was left behind. */
  readonly isRunning: boolean;
}

export interface RemoteTurnsParts {
  readonly store: SessionStore;
  readonly now: () => Date;
}

export function createRemoteTurns({ store, now }: RemoteTurnsParts): RemoteTurns {
  const { peers } = store;

  /** The turn as it is now. */
  async function read(owner: string, turnId: string): Promise<StoredTurn | undefined> {
    const turn = await store.findTurn(owner, turnId);
    if (turn?.status !== "running" || peers === undefined || (await peers.isTaken(nameOfRun(turnId)))) return turn;
    // Its gateway is gone, and nobody else would ever end it. If it has ended since it was read, it stays as it is.
    await store.end(toAbandoned(turn, interrupted, now()));
    return store.findTurn(owner, turnId);
  }

  async function* follow(owner: string, id: string, signal: AbortSignal): Events {
    const tracker = createStreamTracker();
    for await (const events of peers?.subscribe(nameOfRun(id), signal) ?? []) {
      tracker.accept(events);
      yield events;
    }
    const received = tracker.count;
    const turn = await read(owner, id);
    if (turn === undefined) {
      const gone = new GatewayError("not_found", `Response with id '${id}' not found.`);
      if (received === 0) throw gone;
      return yield tracker.finish(failedTurn(gone, now())[1].answer);
    }
    // Its gateway lost its name for a moment. It can be followed again.
    if (turn.status === "running") throw streamUnavailable();
    if (received === 0 && isSilent(turn)) throw toAnswer(turn).error ?? streamUnavailable();
    let isReplayed = false;
    if (received === 0 || isExact(turn)) {
      for await (const events of replayInBatches(turn, received)) {
        isReplayed = true;
        yield events;
      }
    }
    if (isReplayed) return;
    // A gateway that died says nothing more. A complete answer that is too long to be kept event by event must not be
    // reported as a failure.
    if (turn.status !== "failed" && turn.status !== "cancelled") throw streamUnavailable();
    yield tracker.finish(toAnswer(turn));
  }

  return {
    async find(owner, turnId) {
      const turn = await read(owner, turnId);
      if (turn === undefined) return undefined;
      const about = toAbout(turn);
      const isRunning = turn.status === "running" && peers !== undefined;
      if (isRunning)
        return { turn, isRunning, about, isExact: true, follow: (signal) => follow(owner, turnId, signal) };
      const size = () => sizeOfReplay(turn);
      return { turn, isRunning, about, isExact: isExact(turn), size, follow: () => replayInBatches(turn) };
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
