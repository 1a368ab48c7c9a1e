/** The turns that go on without their callers: found by their names and keys, bounded in number, ended before the gateway is. */
import { GatewayError } from "../errors.ts";
import type { Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import { goLive, type LiveTurn, type LogLimits } from "./live.ts";

export interface Live {
  readonly owner: string;
  readonly turnId: string;
  readonly turn: LiveTurn;
  readonly input: readonly Item[];
  readonly memo: (() => string | undefined) | undefined;
  readonly background: boolean;
  /** Of the request that began it. */
  readonly fingerprint: string | undefined;
}

export interface Lives {
  /** Starts a turn; throws `overloaded` when too many run. */
  start(life: Omit<Live, "turn">, keyName: string | undefined, begin: Begin): Live;
  find(owner: string, turnId: string): Live | undefined;
  /** The turn that was begun with this key, while it runs; and after that, when its answer is kept nowhere else. */
  findKey(keyName: string): Live | undefined;
  /** Lets those that run end until `overdue` resolves, then calls them off. */
  close(overdue: Promise<void>): Promise<void>;
}

/** `keepsInMemory` is called when the answer will be kept nowhere else. */
type Begin = (signal: AbortSignal, keepsInMemory: () => void) => Promise<Reply>;

export interface LiveLimits extends LogLimits {
  readonly maxRunning: number;
  /** For how long an answer that is kept nowhere else can be told again. */
  readonly keyMs: number;
  /** How many characters such answers may have together; the oldest go first. */
  readonly maxRememberedCharacters: number;
}

export function createLives(limits: LiveLimits, now: () => Date): Lives {
  const byTurn = new Map<string, Live>();
  const byKey = new Map<string, Live>();
  const remembered = new Map<string, { readonly live: Live; readonly until: number }>();

  function remember(keyName: string, live: Live): void {
    remembered.set(keyName, { live, until: now().getTime() + limits.keyMs });
    let total = 0;
    for (const { live: each } of remembered.values()) total += each.turn.size;
    for (const [oldest, { live: each, until }] of remembered) {
      if (total <= limits.maxRememberedCharacters && until > now().getTime()) break;
      remembered.delete(oldest);
      total -= each.turn.size;
    }
  }

  async function forget(live: Live, keyName: string | undefined, isOnlyHere: () => boolean): Promise<void> {
    await live.turn.ended;
    byTurn.delete(live.turnId);
    if (keyName === undefined) return;
    byKey.delete(keyName);
    if (isOnlyHere() && live.turn.succeeded) remember(keyName, live);
  }

  return {
    start(life, keyName, begin) {
      if (byTurn.size >= limits.maxRunning) {
        throw new GatewayError(
          "overloaded",
          `The gateway already runs ${limits.maxRunning} turns on their own (gateway.sessions.max_background_turns). Try again shortly.`,
          { retryAfterSeconds: 1 },
        );
      }
      let isOnlyHere = false;
      const turn = goLive((signal) => begin(signal, () => (isOnlyHere = true)), limits);
      const live: Live = { ...life, turn };
      byTurn.set(life.turnId, live);
      if (keyName !== undefined) byKey.set(keyName, live);
      void forget(live, keyName, () => isOnlyHere);
      return live;
    },
    find(owner, turnId) {
      const live = byTurn.get(turnId);
      return live?.owner === owner ? live : undefined;
    },
    findKey(keyName) {
      const held = remembered.get(keyName);
      if (held !== undefined && held.until <= now().getTime()) remembered.delete(keyName);
      return byKey.get(keyName) ?? remembered.get(keyName)?.live;
    },
    async close(overdue) {
      const running = [...byTurn.values()];
      const ended = Promise.all(running.map(({ turn }) => turn.ended));
      await Promise.race([ended, overdue]);
      for (const { turn } of running) {
        turn.cancel(
          new GatewayError("interrupted", "The gateway was stopped while this turn ran. Send the request again."),
        );
      }
      await ended;
    },
  };
}
