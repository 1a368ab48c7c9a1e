/** The turns that continue without their callers: found by id, bounded in number, ended before the gateway is. */
import { drainingError, GatewayError } from "../errors.ts";
import { interrupted, toError } from "../frame/replay.ts";
import type { Caller } from "../gateway.ts";
import {
  type BeginLiveTurn,
  type LiveTurn,
  type LiveTurnKind,
  type LiveTurnLimits,
  type LiveTurnParts,
  startLiveTurn,
} from "./live-turn.ts";

export interface LiveTurns {
  /** Starts a turn; throws `overloaded` if too many of its kind run, `draining` if the gateway is closing. */
  start(caller: Caller, kind: LiveTurnKind, begin: BeginLiveTurn): LiveTurn;
  /** Moves a turn to the background; throws the same. */
  toBackground(live: LiveTurn): void;
  find(owner: string, turnId: string): LiveTurn | undefined;
  /** Whether a turn runs here, whoever owns it. */
  has(turnId: string): boolean;
  /** Cancels a turn, whoever owns it. */
  cancel(turnId: string, reason: GatewayError): void;
  /** How many run now. */
  count(): number;
  /** Lets running turns end until `overdue` resolves, then cancels them; starts no new ones. */
  close(overdue: Promise<void>): Promise<void>;
}

export interface LiveTurnsLimits extends LiveTurnLimits {
  /**
   * For background turns and for keyed ones separately, so that a caller with a key does not depend on others'
   * background work.
   */
  readonly maxRunning: number;
}

/** `limits` is called at each use: they may change. */
export function createLiveTurns(limits: () => LiveTurnsLimits, parts: LiveTurnParts): LiveTurns {
  const byTurn = new Map<string, LiveTurn>();
  const running = { background: 0, keyed: 0 };
  let isClosing = false;

  function checkRoom(kind: LiveTurnKind): void {
    if (isClosing) throw drainingError();
    const { maxRunning } = limits();
    if (running[kind] >= maxRunning) throw tooMany(kind, maxRunning);
  }

  return {
    start(caller, kind, begin) {
      checkRoom(kind);
      const live = startLiveTurn(caller, kind, begin, limits(), parts);
      running[kind]++;
      byTurn.set(live.turnId, live);
      live.atEnd(() => {
        running[live.kind]--;
        byTurn.delete(live.turnId);
      });
      return live;
    },
    toBackground(live) {
      checkRoom("background");
      running[live.kind]--;
      live.kind = "background";
      running[live.kind]++;
    },
    find(owner, turnId) {
      const live = byTurn.get(turnId);
      return live?.owner === owner ? live : undefined;
    },
    has: (turnId) => byTurn.has(turnId),
    cancel: (turnId, reason) => byTurn.get(turnId)?.cancel(reason),
    count: () => byTurn.size,
    async close(overdue) {
      isClosing = true;
      const all = [...byTurn.values()];
      const ended = Promise.all(all.map((live) => live.ended));
      await Promise.race([ended, overdue]);
      for (const live of all) live.cancel(toError(interrupted));
      await ended;
    },
  };
}

function tooMany(kind: LiveTurnKind, most: number): GatewayError {
  const which = kind === "background" ? "turns in the background" : "turns with an idempotency key";
  return new GatewayError(
    "overloaded",
    `The gateway is already running ${most} ${which} (gateway.sessions.max_background_turns). Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
