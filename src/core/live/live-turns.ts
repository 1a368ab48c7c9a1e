/**
 * The turns that continue without their callers: found by id and key, bounded in number, ended before the gateway is.
 */
import { drainingError, GatewayError } from "../errors.ts";
import { interrupted, toError } from "../frame/replay.ts";
import type { Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import type { Observer } from "../observer.ts";
import { createDelivery } from "./delivery.ts";
import { startLive, type LiveTurn, type LogLimits, type Source } from "./live.ts";

export interface LiveEntry extends Joinable {
  readonly owner: string;
  readonly turnId: string;
  readonly turn: LiveTurn;
  /** What it was asked, known once it has its place. */
  readonly input: () => readonly Item[];
  readonly memo: (() => string) | undefined;
  readonly background: boolean;
  /** Its answer is only in memory. */
  readonly isOnlyInMemory?: boolean | undefined;
  /** Joins it for the caller that began it; one that does not stay has what it came for once the turn has its place. */
  join(signal: AbortSignal, waitsForEnd?: boolean): Promise<Reply>;
}

export interface LiveTurns {
  /** Starts a turn; throws `overloaded` if too many of its kind run, `draining` if the gateway is closing. */
  start(entry: Omit<LiveEntry, "turn" | "join">, keyName: string | undefined, begin: Begin): LiveEntry;
  find(owner: string, turnId: string): LiveEntry | undefined;
  /** Whether a turn runs here, whoever owns it. */
  has(turnId: string): boolean;
  /** Cancels a turn, whoever owns it. */
  cancel(turnId: string, reason: GatewayError): void;
  /** The turn begun with this key, while it runs; afterwards too, if its answer is stored nowhere else. */
  findKey(keyName: string): Joinable | undefined;
  /** How many run now. */
  count(): number;
  /** Drops expired answers that are stored nowhere else. */
  forgetOld(): void;
  /** Lets running turns end until `overdue` resolves, then cancels them; starts no new ones. */
  close(overdue: Promise<void>): Promise<void>;
}

/** What it takes to join a turn; nothing of its request, which may be much longer than its answer. */
export interface Joinable {
  readonly turn: Pick<LiveTurn, "placed" | "follow" | "ended">;
  /** Of the request that began it. */
  readonly fingerprint: string | undefined;
}

/** Approximate memory of an answer besides its events. */
const answerOverhead = 2_048;

type Begin = (signal: AbortSignal) => Promise<Source>;

export interface LiveLimits extends LogLimits {
  /**
   * For background turns and for keyed ones separately, so that a caller with a key does not depend on others'
   * background work.
   */
  readonly maxRunning: number;
  /** How long an answer that is stored nowhere else can be replayed. */
  readonly keyMs: number;
  /** How many characters such answers may have together; the oldest go first. */
  readonly maxRememberedCharacters: number;
}

/** `limits` is called at each use: they may change. */
export function createLiveTurns(
  limits: () => LiveLimits,
  now: () => Date,
  observer?: Pick<Observer, "endedWithoutCaller">,
): LiveTurns {
  const byTurn = new Map<string, LiveEntry>();
  const byKey = new Map<string, LiveEntry>();
  const running = { background: 0, keyed: 0 };
  const remembered = new Map<string, Joinable & { readonly size: number; readonly until: number }>();
  let rememberedSize = 0;
  let isClosing = false;

  function remember(keyName: string, { turn, fingerprint }: LiveEntry): void {
    const { placed, follow, ended } = turn;
    const { keyMs, maxRememberedCharacters } = limits();
    const size = turn.size + answerOverhead;
    remembered.set(keyName, { turn: { placed, follow, ended }, fingerprint, size, until: +now() + keyMs });
    rememberedSize += size;
    forgetOld(maxRememberedCharacters);
  }

  function forgetOld(maxSize = Infinity): void {
    for (const [oldest, { until }] of remembered) {
      if (rememberedSize <= maxSize && until > +now()) break;
      forgetAnswer(oldest);
    }
  }

  function forgetAnswer(keyName: string): void {
    rememberedSize -= remembered.get(keyName)?.size ?? 0;
    remembered.delete(keyName);
  }

  async function forget(live: LiveEntry, keyName: string | undefined): Promise<void> {
    await live.turn.ended;
    running[kindOf(live)]--;
    // The background turn of a keyed request may have taken its id.
    if (byTurn.get(live.turnId) === live) byTurn.delete(live.turnId);
    if (keyName === undefined) return;
    byKey.delete(keyName);
    if (live.isOnlyInMemory === true && live.turn.succeeded) remember(keyName, live);
  }

  return {
    start(entry, keyName, begin) {
      if (isClosing) throw drainingError();
      const current = limits();
      const kind = kindOf(entry);
      if (running[kind] >= current.maxRunning) throw tooMany(kind, current.maxRunning);
      running[kind]++;
      const delivery = createDelivery({ turnId: entry.turnId, owner: entry.owner, now, observer });
      const turn = startLive((signal) => delivery.track(() => begin(signal)), current, now);
      const live: LiveEntry = {
        ...entry,
        turn,
        join: (signal, waitsForEnd = true) => delivery.join(turn, signal, waitsForEnd),
      };
      byTurn.set(entry.turnId, live);
      if (keyName !== undefined) byKey.set(keyName, live);
      void forget(live, keyName);
      return live;
    },
    find(owner, turnId) {
      const live = byTurn.get(turnId);
      return live?.owner === owner ? live : undefined;
    },
    has: (turnId) => byTurn.has(turnId),
    count: () => byTurn.size,
    forgetOld: () => forgetOld(),
    cancel: (turnId, reason) => byTurn.get(turnId)?.turn.cancel(reason),
    findKey(keyName) {
      const held = remembered.get(keyName);
      if (held !== undefined && held.until <= +now()) forgetAnswer(keyName);
      return byKey.get(keyName) ?? remembered.get(keyName);
    },
    async close(overdue) {
      isClosing = true;
      const running = [...byTurn.values()];
      const ended = Promise.all(running.map(({ turn }) => turn.ended));
      await Promise.race([ended, overdue]);
      for (const { turn } of running) turn.cancel(toError(interrupted));
      await ended;
    },
  };
}

type Kind = "background" | "keyed";

function kindOf({ background }: Pick<LiveEntry, "background">): Kind {
  return background ? "background" : "keyed";
}

function tooMany(kind: Kind, most: number): GatewayError {
  const which = kind === "background" ? "turns in the background" : "turns with an idempotency key";
  return new GatewayError(
    "overloaded",
    `The gateway is already running ${most} ${which} (gateway.sessions.max_background_turns). Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
