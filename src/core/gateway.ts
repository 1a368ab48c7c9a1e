/** The story of a turn: find its place, wait its turn, ask the adapter, relay what it says, store it. */
import { createAsker, type GrowingAbout } from "./window/asking.ts";
import { createBeginStored, describeUnplaced } from "./live/begun.ts";
import { createChain } from "./place/chain.ts";
import { assembleContext } from "./place/context.ts";
import { type ConversationDesk, createConversations } from "./conversation/conversations.ts";
import { countTokens, type TokenCount } from "./window/count.ts";
import { cancelledError, drainingError } from "./errors.ts";
import type { Events } from "./event.ts";
import type { FitParts } from "./window/fit.ts";
import { frame } from "./frame/frame.ts";
import { interrupted } from "./frame/replay.ts";
import type { Item } from "./item.ts";
import type { TurnRecord } from "./turn-record.ts";
import { createRemoteTurns } from "./live/remote-turns.ts";
import { createKeyed, type KeyedLimits } from "./live/keyed.ts";
import { leaveOnReturn } from "./leaving.ts";
import { createLiveTurns, type LiveTurnsLimits } from "./live/live-turns.ts";
import { findContinued, findPlace, type Requester, withUnstored } from "./place/place.ts";
import type { About } from "./ports.ts";
import { createQueue, leaveAll } from "./place/queue.ts";
import { createThreads } from "./place/threads.ts";
import { createRecall, type Recall } from "./live/recall.ts";
import { createSettling, isNamed, type PlacedTurn } from "./settling.ts";
import { checkSize, type SizeLimits } from "./size.ts";
import type { ThreadLimits } from "./place/surplus.ts";
import { resolveReferences } from "./conversation/references.ts";
import type { IdempotencyKey, SessionStore } from "./store.ts";
import type { Ask, Trace } from "./turn.ts";
import type { Observer } from "./observer.ts";
import { unlessAborted } from "./unless-aborted.ts";

export interface Gateway extends Recall {
  /**
   * Resolves when the turn has its place. The first batch of events comes with the adapter's first word: earlier
   * failures are thrown, later ones are told by the one `turn-end`. The caller must pull to the end or call `return()`.
   */
  answer(ask: Ask, caller: Caller): Promise<Reply>;
  /** Throws if what the request continues does not exist. */
  checkContinued(ask: Ask, owner: string): Promise<void>;
  /** How many tokens the model would read if asked now; waits for no other turn and stores nothing. */
  countTokens(ask: Ask, caller: Caller): Promise<TokenCount>;
  readonly conversations: ConversationDesk;
  /** The current load. */
  load(): Load;
  /** The ids of the sessions and turns that running turns continue: pruned now, a turn's place would be gone at its end. */
  inUse(): ReadonlySet<string>;
  /** Drops expired answers that are held only in memory, and what was learnt of models that may have changed. */
  forgetOld(): void;
  /**
   * Ends turns, begun before this, that are stored as running but run nowhere: their gateway died, or the store failed.
   */
  endLeft(before?: Date): Promise<void>;
  /**
   * Lets running turns end until `overdue` resolves, then cancels those that continue without their callers; starts no
   * new ones.
   */
  close(overdue: Promise<void>): Promise<void>;
}

/** Turns, counted now. */
export interface Load {
  /** Waiting for another turn of their session to end. */
  readonly waiting: number;
  /** Continuing without their callers: in the background, or with an idempotency key. */
  readonly live: number;
}

export interface Caller extends Requester {
  /** The id of the turn to come, so that even one that fails early can be named. */
  readonly turnId: string;
  /** When it was asked, if not now. */
  readonly createdAt?: Date | undefined;
  readonly trace?: Trace | undefined;
  /** What its dialect needs to replay the answer. */
  readonly memo?: (() => string) | undefined;
  /** Identifies a repeated request, so that it is answered once; the turn then continues without its caller. */
  readonly key?: AskedKey | undefined;
  /** It already has the beginning of an answer to its key; no other will do. */
  readonly resumes?: Resumption | undefined;
  /** Grants a slot to a turn that continues without its caller; absent: there is always one. */
  readonly stay?: AcquireSlot | undefined;
}

/** Takes a slot, or throws if there is none; returns what releases it. */
export type AcquireSlot = () => () => void;

export interface AskedKey extends IdempotencyKey {
  /** The caller's name for the key, in errors. */
  readonly param: string;
}

export interface Resumption {
  /** The caller's name for where it was cut off, in errors. */
  readonly param: string;
  /** Whether the caller may have a part of this turn. */
  isOf(turnId: string): boolean;
}

export interface Reply {
  readonly about: About;
  /** An earlier request with the same key began the answer. */
  readonly isRepeated?: boolean | undefined;
  /** About how many characters are kept in memory only for this reader; absent: none. */
  readonly size?: number | undefined;
  /** The conversation the turn continues, with its new items; only if the turn begins with this request. */
  readonly context?: readonly Item[] | undefined;
  readonly events: Events;
}

export interface GatewayParts extends FitParts {
  readonly store: SessionStore;
  /** Read at each use: they may change while the gateway runs. */
  readonly limits: () => GatewayLimits;
  /** Callers that do not say count as resending their history, from the first turn on; may change too. */
  readonly alwaysResends: () => boolean;
  readonly now: () => Date;
  /** Counts on steadily, however the clock is set; by default the clock. */
  readonly elapsedMs?: (() => number) | undefined;
  readonly newSessionId: () => string;
  /** A short, collision-resistant hash. */
  readonly digest: (text: string) => string;
  /** Absent: nobody counts. */
  readonly observer?: Pick<Observer, "placed" | "endedWithoutCaller"> | undefined;
}

export interface GatewayLimits extends LiveTurnsLimits, KeyedLimits, SizeLimits, ThreadLimits {
  /** The most characters that the items a request refers to may have together. */
  readonly maxReferencedCharacters: number;
  readonly maxQueuedPerThread: number;
}

/** Begins a turn; `isBegun`: it is stored as running before the model is asked. */
export type BeginTurn = (ask: Ask<Item>, caller: Caller, isBegun?: boolean) => Promise<Reply>;

/** A turn that has not ended. */
interface OpenTurn {
  readonly owner: string;
  readonly ended: Promise<void>;
  /** The ids of the session and the turn that it continues, once it has its place. */
  continues: readonly string[];
}

export function createGateway(parts: GatewayParts): Gateway {
  const { store, limits, now, elapsedMs = () => +now(), newSessionId, alwaysResends, observer } = parts;
  const chain = createChain(parts.digest);
  const queue = createQueue(() => limits().maxQueuedPerThread, store.peers);
  const placing = { store, chain, queue, newSessionId, unstored: new Map(), threads: createThreads(), alwaysResends };
  const settlingParts = { store, chain, limits, now };
  const asker = createAsker(parts);
  /** All turns that have not ended, whoever follows them. */
  const open = new Set<OpenTurn>();
  /** Those whose items callers may refer to: whoever stops one may do so next, when it has not quite ended here. */
  const named = new Map<string, OpenTurn>();
  let isClosing = false;
  const liveTurns = createLiveTurns(limits, { elapsedMs, observer });
  const remoteTurns = createRemoteTurns({ store, now });
  store.peers?.onCancel((turnId) => liveTurns.cancel(turnId, cancelledError()));
  const inUse = () => new Set(open.values().flatMap(({ continues }) => continues));
  const tellUse = store.peers?.shareUse(inUse);
  const beginStored = createBeginStored({ store, begin, now });
  const keyed = createKeyed({ store, liveTurns, remoteTurns, begin, beginStored, resolve, limits, now, elapsedMs });

  /** Looks up the items that a request refers to; those of a running turn once it has ended. */
  async function resolve(ask: Ask, { owner, signal, memory }: Pick<Caller, "owner" | "signal" | "memory">) {
    const findTurn: SessionStore["findTurn"] = async (_owner, turnId) => {
      // It may end while the store is asked.
      const turn = named.get(turnId);
      const found = await store.findTurn(owner, turnId);
      if (found !== undefined || turn?.owner !== owner) return found;
      await unlessAborted(turn.ended, signal);
      return store.findTurn(owner, turnId);
    };
    const items = await resolveReferences({ findTurn }, owner, ask, limits().maxReferencedCharacters);
    const resolved = withUnstored({ ...ask, items }, memory);
    if (resolved.items.length > items.length) checkSize(resolved, limits(), ask.settings.tools);
    return resolved;
  }

  async function begin(ask: Ask<Item>, caller: Caller, isBegun = false): Promise<Reply> {
    const { turnId: id, owner, key, memo } = caller;
    const whenLeft: (() => void)[] = [];
    const leave = () => leaveAll(whenLeft);
    const { promise: ended, resolve: tellEnd } = Promise.withResolvers<void>();
    const opened: OpenTurn = { owner, ended, continues: [] };
    const end = () => {
      leave();
      named.delete(id);
      open.delete(opened);
      tellEnd();
    };
    open.add(opened);
    try {
      const place = await findPlace(placing, ask, caller, whenLeft);
      opened.continues = [place.session?.id, place.path.tip?.id].filter((id) => id !== undefined);
      tellUse?.();
      caller.stands?.();
      const context = assembleContext(place, ask);
      const { items, truncation, stream } = await asker.prepare(ask, caller, place, context);
      // A key means that the answer must be there for a repeated request; what the store has as running must end there.
      const isKept = ask.keep === "in-session" ? place.by !== "nothing" || key !== undefined : ask.keep === "yes";
      const isStored = isBegun || isKept;
      // Nobody should pay for an answer that cannot be stored, and a stream that has begun can set no status.
      if (isStored) await store.check();
      const about: GrowingAbout = {
        id,
        createdAt: caller.createdAt ?? now(),
        model: ask.model,
        session: isStored ? place.move?.id : place.session?.id,
        history: place.history,
        contextItems: items.length,
        omittedItems: context.length - items.length,
        truncation,
        remarks: [],
      };
      observer?.placed(place.history);
      const isReplayable = isBegun || memo !== undefined || key !== undefined;
      const turnRecord: TurnRecord = { owner, about, memo, background: ask.background === true, isReplayable };
      const turn: PlacedTurn = { ask, caller, place, turnRecord, isStored, isBegun, leave, end };
      if (isNamed(turn)) named.set(id, opened);
      const settling = createSettling(settlingParts, turn);
      const events = frame(id, stream(about), settling);
      return { about, context, events: leaveOnReturn(events, settling.leave, end) };
    } catch (thrown) {
      end();
      throw thrown;
    }
  }

  return {
    async answer(ask, caller) {
      if (isClosing) throw drainingError();
      checkSize(ask, limits(), ask.settings.tools);
      // What a repeated request refers to may be gone, so its key is looked up first.
      if (caller.key !== undefined) return keyed.answer(ask, caller, caller.key);
      const resolved = await resolve(ask, caller);
      // Nobody would wait for it or cancel it.
      if (isClosing) throw drainingError();
      if (ask.background !== true) return begin(resolved, caller);
      // Before it takes room: what it continues may not exist, which is told even if there is none.
      const early = await describeUnplaced(parts, resolved, caller);
      const live = liveTurns.start(caller, "background", async (started) => {
        started.atEnd(caller.stay?.());
        return beginStored(resolved, caller, started, early);
      });
      return live.join(caller.signal, ask.stream);
    },
    async checkContinued(ask, owner) {
      await findContinued(store, owner, ask);
    },
    async countTokens(ask, caller) {
      checkSize(ask, limits(), ask.settings.tools);
      const { turnId: id, signal } = caller;
      const resolved = await resolve(ask, caller);
      // It takes no turn of a thread, so it need not wait: nobody else is in its queue.
      const alone = { ...placing, queue: createQueue(() => 0), unstored: new Map() };
      const place = await findPlace(alone, resolved, caller, []);
      const { model, settings, stream } = ask;
      return countTokens(parts, { id, model, items: assembleContext(place, resolved), settings, stream }, signal);
    },
    ...createRecall({ store, liveTurns, remoteTurns }),
    conversations: createConversations({ ...placing, limits, now }),
    load: () => ({ waiting: queue.waiting(), live: liveTurns.count() }),
    inUse,
    forgetOld() {
      keyed.forgetOld();
      asker.forget();
    },
    async endLeft(before) {
      const isOld = (createdAt: Date) => before === undefined || createdAt < before;
      await store.endRunning(interrupted, now(), ({ id, createdAt }) => !liveTurns.has(id) && isOld(createdAt));
    },
    async close(overdue) {
      isClosing = true;
      await liveTurns.close(overdue);
      await Promise.race([Promise.all(Array.from(open, ({ ended }) => ended)), overdue]);
    },
  };
}
