/** Requests with an idempotency key: answered once, and replayed to whoever repeats them. */
import { GatewayError } from "../errors.ts";
import type { AskedKey, Caller, Reply, Resumption } from "../gateway.ts";
import type { Item } from "../item.ts";
import { createTally } from "../tally.ts";
import type { Ask } from "../turn.ts";
import { unlessAborted } from "../unless-aborted.ts";
import { type BeginStored, type BeginStoredParts, describeUnplaced, isPublishable } from "./begun.ts";
import type { RemoteTurn, RemoteTurns } from "./remote-turns.ts";
import type { Begun, Followable, LiveTurn } from "./live-turn.ts";
import type { LiveTurns } from "./live-turns.ts";

export interface Keyed {
  /** The answer to the first request with this key, from the beginning: running or stored. */
  answer(ask: Ask, caller: Caller, key: AskedKey): Promise<Reply>;
  /** Drops expired answers that are stored nowhere else. */
  forgetOld(): void;
}

export interface KeyedParts extends BeginStoredParts {
  readonly liveTurns: LiveTurns;
  readonly remoteTurns: RemoteTurns;
  readonly beginStored: BeginStored;
  /** Looks up the items that a request refers to. */
  readonly resolve: (ask: Ask, caller: Pick<Caller, "owner" | "signal">) => Promise<Ask<Item>>;
  /** Called at each use: they may change. */
  readonly limits: () => KeyedLimits;
  /** For answers that are only in memory: a clock that leaps must not make it forget them. */
  readonly elapsedMs: () => number;
}

export interface KeyedLimits {
  /** How long a key is valid. */
  readonly keyMs: number;
  /** How many characters the answers that are stored nowhere else may have together. */
  readonly maxRememberedCharacters: number;
}

export function createKeyed(parts: KeyedParts): Keyed {
  const { store, liveTurns, remoteTurns, begin, beginStored, resolve, limits, now, elapsedMs } = parts;
  const running = new Map<string, FirstAnswer>();
  const unstored = createUnstored(limits, elapsedMs);

  async function answer(ask: Ask, caller: Caller, key: AskedKey): Promise<Reply> {
    const { owner, turnId, signal, resumes } = caller;
    const name = nameOf(owner, key);
    const findFirst = () => running.get(name) ?? unstored.find(owner, key.key);
    let first = findFirst();
    while (first !== undefined && first.fingerprint !== key.fingerprint) {
      await unlessAborted(refuseUnlessItFails(first, key), signal);
      first = findFirst();
    }
    if (resumes !== undefined) {
      // No other answer may be appended to the one that the caller has the beginning of.
      const found = await unlessAborted(first?.placed ?? findAnswer(ask, owner, key), signal);
      if (found?.isExact !== true || !resumes.isOf(found.about.id)) throw nothingToResume(key, resumes);
      return repeat(found, signal);
    }
    // Nothing is awaited from here to the start, so that of many at once only one begins.
    if (first !== undefined) return repeat(await unlessAborted(first.placed, signal), signal);
    const reply = await start(ask, caller, key);
    return { ...reply, isRepeated: reply.about.id !== turnId };
  }

  function start(ask: Ask, caller: Caller, key: AskedKey): Promise<Reply> {
    const live = liveTurns.start(caller, "keyed", (started) => findOrBegin(ask, caller, key, started));
    const { placed, ended } = live;
    const name = nameOf(caller.owner, key);
    const first = { fingerprint: key.fingerprint, placed, ended };
    running.set(name, first);
    live.atEnd((end) => {
      running.delete(name);
      const isAnswered = end !== undefined && end.failure === undefined;
      if (isAnswered && isOnlyInMemory(ask)) unstored.add(caller.owner, key.key, first, live.log.size());
    });
    return live.join(caller.signal, ask.background !== true || ask.stream);
  }

  async function findOrBegin(ask: Ask, caller: Caller, key: AskedKey, live: LiveTurn): Promise<Begun | Followable> {
    const { owner } = caller;
    const { signal } = live;
    // Another gateway that answers the same request has the key until its turn can be found by it, and followed there.
    const leaveKey = await store.peers?.enter(`key ${nameOf(owner, key)}`, signal);
    live.atEnd(leaveKey);
    const found = await findAnswer(ask, owner, key);
    if (found !== undefined) return found;
    live.atEnd(caller.stay?.());
    const resolved = await resolve(ask, { ...caller, signal });
    const early = ask.background === true ? await describeUnplaced(parts, resolved, caller) : undefined;
    if (early !== undefined) liveTurns.toBackground(live);
    else if (isOnlyInMemory(ask) || store.peers === undefined) {
      const { about, events } = await begin(resolved, { ...caller, signal });
      return { about, events, input: resolved.items };
    }
    const begun = await beginStored(resolved, caller, live, early);
    leaveKey?.();
    return begun;
  }

  /** The existing answer: stored, or still running on another gateway. */
  async function findAnswer(ask: Ask, owner: string, key: AskedKey): Promise<Followable | undefined> {
    const known = await store.findKey(owner, key.key);
    const found = known && (await remoteTurns.find(owner, known.turnId));
    if (known === undefined || found === undefined || isToRetry(found)) return undefined;
    const { about, follow, size, isRunning, isExact } = found;
    if (+now() - +about.createdAt >= limits().keyMs) return undefined;
    if (known.fingerprint !== key.fingerprint) throw conflict(key);
    // Its key is that of the same request.
    return { about, follow, size, isExact: isRunning ? isPublishable(ask) : isExact };
  }

  return { answer, forgetOld: unstored.forgetOld };
}

function nameOf(owner: string, { key }: AskedKey): string {
  return JSON.stringify([owner, key]);
}

function repeat({ about, follow, size }: Followable, signal: AbortSignal): Reply {
  return { about, events: follow(signal), size: size?.(), isRepeated: true };
}

/** The answer to the first request with a key; nothing of that request, which may be much longer. */
interface FirstAnswer extends Pick<LiveTurn, "placed" | "ended"> {
  readonly fingerprint: string;
}

interface Remembered extends FirstAnswer {
  readonly size: number;
  readonly until: number;
}

/**
 * Answers that are only in memory: their callers forbid to store them. If there is too much, the owner of the most loses
 * its oldest, so that nobody can make a gateway forget the answers, and repeat the turns, of others.
 */
function createUnstored(limits: () => KeyedLimits, elapsedMs: () => number) {
  /** By owner, then by key, the oldest first. */
  const answers = new Map<string, Map<string, Remembered>>();
  const sizes = createTally();

  function forget(owner: string, key: string): void {
    const own = answers.get(owner);
    const size = own?.get(key)?.size ?? 0;
    own?.delete(key);
    if (own?.size === 0) answers.delete(owner);
    sizes.add(owner, -size);
  }

  function forgetSurplus(maxSize: number): void {
    while (sizes.total > maxSize) {
      const largest = sizes.largest();
      const [oldest = ""] = answers.get(largest)?.keys() ?? [];
      forget(largest, oldest);
    }
  }

  function forgetOld(): void {
    for (const [owner, own] of answers) {
      for (const [key, { until }] of own) {
        if (until > elapsedMs()) break;
        forget(owner, key);
      }
    }
  }

  return {
    find(owner: string, key: string): FirstAnswer | undefined {
      const answer = answers.get(owner)?.get(key);
      return answer !== undefined && answer.until > elapsedMs() ? answer : undefined;
    },
    add(owner: string, key: string, answer: FirstAnswer, characters: number): void {
      const { keyMs, maxRememberedCharacters } = limits();
      const size = characters + answerOverhead;
      forget(owner, key);
      const own = answers.get(owner) ?? new Map<string, Remembered>();
      answers.set(owner, own.set(key, { ...answer, size, until: elapsedMs() + keyMs }));
      sizes.add(owner, size);
      forgetOld();
      forgetSurplus(maxRememberedCharacters);
    },
    forgetOld,
  };
}

/** Approximate memory of an answer besides its events. */
const answerOverhead = 2_048;

/** With a key, everything is stored unless its caller forbids it. */
function isOnlyInMemory({ keep, background }: Ask): boolean {
  return keep === "no" && background !== true;
}

/** Repeating a request whose turn failed, or was left behind, tries it again; a cancelled one stays cancelled. */
function isToRetry({ turn: { status }, isRunning }: RemoteTurn): boolean {
  return status === "failed" || (status === "running" && !isRunning);
}

/** Another request with the same key is a conflict, unless that one fails before it has a place. */
async function refuseUnlessItFails({ placed, ended }: FirstAnswer, key: AskedKey): Promise<void> {
  const isPlaced = await placed.then(
    () => true,
    () => false,
  );
  if (isPlaced) throw conflict(key);
  await ended;
}

function conflict({ param }: AskedKey): GatewayError {
  return new GatewayError(
    "idempotency_conflict",
    `This ${param} was used for another request. Repeat the same request with it, or choose a new key.`,
    { param },
  );
}

function nothingToResume(key: AskedKey, { param }: Resumption): GatewayError {
  return new GatewayError(
    "events_expired",
    `The stream of this ${key.param} can no longer be resumed: it failed, or is too old. Send the request without '${param}' to get its answer from the beginning.`,
    { param },
  );
}
