/**
 * Turns that run on a store shared by several gateways: others hear them as they are told, or at the latest when they
 * end.
 */
import { GatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import { failedTurn } from "../frame/frame.ts";
import { createOverheard } from "../frame/overheard.ts";
import { giveUp, interrupted, isExact, replayTurn, tellAgain, toAnswer } from "../frame/replay.ts";
import { nameOfRun } from "../neighbours.ts";
import type { SessionStore, StoredTurn } from "../store.ts";

export interface Elsewhere {
  /** Other gateways may want to hear of a turn that runs here. */
  readonly hasListeners: boolean;
  /** Announces that a turn runs here, until the function is called. */
  announce(turnId: string, signal: AbortSignal): Promise<(() => void) | undefined>;
  /** Tells the others what it says. They learn its end from the store. */
  tell(turnId: string, events: readonly Event[]): void;
  /** The turn as it is now; if it runs, another gateway runs it, unless the store has no others. */
  look(turn: StoredTurn): Promise<StoredTurn | undefined>;
  /** Whether another gateway runs it. */
  isThere(turn: StoredTurn): boolean;
  /** All its events, past and future. */
  follow(turn: StoredTurn, signal: AbortSignal): Events;
  /** Has a turn cancelled, wherever it runs, if it is meant. */
  callOff(owner: string, turnId: string, isMeant?: (turn: StoredTurn) => boolean): Promise<void>;
}

export interface ElsewhereParts {
  readonly store: SessionStore;
  readonly now: () => Date;
}

export function createElsewhere({ store, now }: ElsewhereParts): Elsewhere {
  const { neighbours } = store;

  async function look(turn: StoredTurn): Promise<StoredTurn | undefined> {
    if (turn.status !== "running") return turn;
    if (neighbours !== undefined && (await neighbours.isTaken(nameOfRun(turn.id)))) return turn;
    // It may have ended since it was read.
    const current = await store.findTurn(turn.owner, turn.id);
    if (neighbours === undefined || current?.status !== "running") return current;
    // Its gateway is gone, and nobody else would ever end it.
    await store.end(giveUp(current, interrupted, now()));
    return store.findTurn(turn.owner, turn.id);
  }

  return {
    hasListeners: neighbours !== undefined,
    announce: async (turnId, signal) => neighbours?.enter(nameOfRun(turnId), signal),
    tell(turnId, events) {
      neighbours?.tell(
        nameOfRun(turnId),
        events.filter(({ type }) => type !== "turn-end"),
      );
    },
    look,
    isThere: ({ status }) => status === "running" && neighbours !== undefined,
    async *follow({ owner, id }, signal) {
      const overheard = createOverheard();
      for await (const events of neighbours?.hear(nameOfRun(id), signal) ?? []) {
        overheard.hear(events);
        yield events;
      }
      const heard = overheard.count;
      const found = await store.findTurn(owner, id);
      const turn = found && (await look(found));
      if (turn === undefined) {
        const gone = new GatewayError("not_found", `Response with id '${id}' not found.`);
        if (heard === 0) throw gone;
        return yield overheard.breakOff(failedTurn(gone, now())[1].answer);
      }
      if (heard === 0 && isSilent(turn)) throw toAnswer(turn).error ?? brokenOff();
      if (heard === 0) return yield* tellAgain(turn);
      const rest = replayTurn(turn).slice(heard);
      if (rest.length > 0 && isExact(turn)) return yield rest;
      // A gateway that died says nothing more. A complete answer that is too long to be kept event by event must not be
      // reported as a failure, and one that still runs can be heard again.
      if (turn.status !== "failed" && turn.status !== "cancelled") throw brokenOff();
      yield overheard.breakOff(toAnswer(turn));
    },
    async callOff(owner, turnId, isMeant = () => true) {
      if (neighbours === undefined) return;
      const turn = await store.findTurn(owner, turnId);
      if (turn?.status === "running" && isMeant(turn)) await neighbours.callOff(nameOfRun(turnId), turnId);
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

function brokenOff(): GatewayError {
  return new GatewayError(
    "events_expired",
    "The rest of this answer's stream is not available. Retrieve the whole answer, or repeat a request with an idempotency key once its answer is complete.",
  );
}
