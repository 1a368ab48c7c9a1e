/** The story of a turn: find its place, take its turn, ask the adapter, tell what it says, remember it. */
import { createBackground } from "./live/background.ts";
import { createChain } from "./place/chain.ts";
import { summarise } from "./window/compact.ts";
import { assembleContext } from "./place/context.ts";
import { type ConversationDesk, createConversations } from "./conversation/conversations.ts";
import { countTokens, type TokenCount } from "./window/count.ts";
import { drainingError } from "./errors.ts";
import type { Events } from "./event.ts";
import { fitContext, type FitParts, truncationOf } from "./window/fit.ts";
import { frame } from "./frame/frame.ts";
import { interrupted } from "./frame/replay.ts";
import type { Item } from "./item.ts";
import type { Keepsake } from "./keep.ts";
import { createElsewhere } from "./live/elsewhere.ts";
import { createKeyed } from "./live/keyed.ts";
import { leaveOnReturn } from "./leaving.ts";
import { createLives, type LiveLimits } from "./live/lives.ts";
import { findContinued, findPlace, type Seeker } from "./place/place.ts";
import type { About, Remark, Tell } from "./ports.ts";
import { createQueue, leaveAll, type Queue } from "./place/queue.ts";
import { calledOff, createRecall, type Recall } from "./live/recall.ts";
import { createSettling, isNamed, type PlacedTurn } from "./settling.ts";
import { checkSize, type SizeLimits } from "./size.ts";
import { resolveReferences } from "./conversation/references.ts";
import type { IdempotencyKey, SessionStore } from "./store.ts";
import type { Ask, Trace, Turn } from "./turn.ts";
import type { Witness } from "./witness.ts";

export interface Gateway extends Recall {
  /**
   * Resolves when the turn has its place. The first batch of events comes with the adapter's first word: what fails before
   * is thrown, what fails later is told by the one `turn-end`. Whoever asks must pull to the end or call `return()`.
   */
  answer(ask: Ask, caller: Caller): Promise<Reply>;
  /** Throws when what the request names to go on from is not there. */
  checkContinued(ask: Ask, owner: string): Promise<void>;
  /** How many tokens the model would read if this were asked now; it waits for no other turn, and nothing is kept. */
  countTokens(ask: Ask, caller: Caller): Promise<TokenCount>;
  readonly conversations: ConversationDesk;
  /** How much there is to do now. */
  load(): Load;
  /** Lets go of answers that are kept nowhere else, and can no longer be told again. */
  forgetOld(): void;
  /** Ends what the store has as running, for so long, and nobody runs: its gateway has died, or the store failed when it ended. */
  endLeft(before?: Date): Promise<void>;
  /** Lets the turns that run end until `overdue` resolves, then calls off those that go on without their callers; none begins any more. */
  close(overdue: Promise<void>): Promise<void>;
}

/** Turns, counted now. */
export interface Load {
  /** Those that wait for another one of their session to end. */
  readonly waiting: number;
  /** Those that go on without their callers: in the background, or with an idempotency key. */
  readonly live: number;
}

export interface Caller extends Seeker {
  /** The name of the turn to come, so that even one that fails early can be told by name. */
  readonly turnId: string;
  /** When it was asked, if that is not now. */
  readonly createdAt?: Date | undefined;
  readonly trace?: Trace | undefined;
  /** What its dialect needs to tell the answer again. */
  readonly memo?: (() => string) | undefined;
  /** Makes a repeated request known, so that it is answered once; the turn then goes on when its caller is gone. */
  readonly key?: AskedKey | undefined;
  /** It has the beginning of an answer to its key already, so that no other will do. */
  readonly resumes?: Resumption | undefined;
  /** Asked for a place by a turn that goes on without its caller; absent: there is always one. */
  readonly stay?: Stay | undefined;
}

/** Takes a place, or throws when there is none; gives what gives it back. */
export type Stay = () => () => void;

export interface AskedKey extends IdempotencyKey {
  /** The caller's word for the key, for errors that speak of it. */
  readonly param: string;
}

export interface Resumption {
  /** The caller's word for where it was cut off, for errors that speak of it. */
  readonly param: string;
  /** Whether what the caller has may be of this turn. */
  isOf(turnId: string): boolean;
}

export interface Reply {
  readonly about: About;
  /** The answer was begun by an earlier request with the same key. */
  readonly isRepeated?: boolean | undefined;
  /** The conversation that the turn goes on with, new items included; only of one that begins with this request. */
  readonly context?: readonly Item[] | undefined;
  readonly events: Events;
}

export interface GatewayParts extends FitParts {
  readonly store: SessionStore;
  /** Asked whenever they count: they may change while the gateway runs. */
  readonly limits: () => GatewayLimits;
  /** Every session's callers show their history, from its first turn on; this may change too. */
  readonly alwaysResends: () => boolean;
  readonly now: () => Date;
  readonly newSessionId: () => string;
  /** A hash, short and without collisions. */
  readonly digest: (text: string) => string;
  /** Absent: nobody counts. */
  readonly witness?: Pick<Witness, "placed" | "endedAlone"> | undefined;
}

export interface GatewayLimits extends LiveLimits, SizeLimits {
  /** How many characters the items that a request only names may have together. */
  readonly maxReferencedCharacters: number;
  readonly maxQueuedPerThread: number;
  readonly maxTurnsPerThread: number;
}

/** How a turn is begun, and whether the store knows it as running before it is asked. */
export type BeginTurn = (ask: Ask<Item>, caller: Caller, known?: Known) => Promise<Reply>;
type Known = "unknown" | "in background" | "by key";

/** What is known of a turn that runs. */
interface GrowingAbout extends About {
  adapter?: string | undefined;
  readonly remarks: Remark[];
}

export function createGateway(parts: GatewayParts): Gateway {
  const { adapter, store, limits, now, newSessionId, alwaysResends, witness } = parts;
  const chain = createChain(parts.digest);
  const queue = createQueue(() => limits().maxQueuedPerThread, store.neighbours);
  const placing = { store, chain, queue, newSessionId, unkept: new Map(), alwaysResends };
  const settlingParts = { store, chain, limits, now };
  /** Turns whose items may be named when they are over: a caller that stops one may do so before we know that it is gone. */
  const running = new Map<string, { readonly owner: string; readonly over: Promise<void> }>();
  /** All that are not over, whoever hears them. */
  const open = new Set<Promise<void>>();
  let isClosing = false;
  const ended: Pick<SessionStore, "findTurn"> = {
    async findTurn(owner, turnId) {
      // It may be over when the store has answered.
      const turn = running.get(turnId);
      const found = await store.findTurn(owner, turnId);
      if (found !== undefined || turn?.owner !== owner) return found;
      await turn.over;
      return store.findTurn(owner, turnId);
    },
  };
  const resolve = (ask: Ask, owner: string): Promise<Ask<Item>> =>
    resolveReferences(ended, owner, ask, limits().maxReferencedCharacters);
  const lives = createLives(limits, now, witness);
  const elsewhere = createElsewhere({ store, now });
  store.neighbours?.onCalledOff((turnId) => lives.callOff(turnId, calledOff()));
  const inBackground = createBackground({ store, lives, elsewhere, begin, now });
  const once = createKeyed({ store, lives, elsewhere, begin, inBackground, resolve, keyMs: () => limits().keyMs, now });

  async function begin(ask: Ask<Item>, caller: Caller, known: Known = "unknown"): Promise<Reply> {
    const { turnId: id, owner, key, memo } = caller;
    const whenLeft: (() => void)[] = [];
    const leave = () => leaveAll(whenLeft);
    const over = Promise.withResolvers<void>();
    const finish = () => {
      running.delete(id);
      open.delete(over.promise);
      over.resolve();
    };
    open.add(over.promise);
    try {
      const place = await findPlace(placing, ask, caller, whenLeft);
      caller.stands?.();
      const truncation = truncationOf(ask, place.by);
      const context = assembleContext(place, ask);
      const { items, omitted } = await fitContext(parts, ask, context, truncation);
      // A key asks for the answer to be there when the request comes again.
      const isKept = ask.keep === "in-session" ? place.by !== "nothing" || key !== undefined : ask.keep === "yes";
      // Nobody shall pay a model for an answer that cannot be kept, and a stream that has begun has no status any more.
      if (isKept) await store.check();
      const about: GrowingAbout = {
        id,
        createdAt: caller.createdAt ?? now(),
        model: ask.model,
        session: isKept ? place.move?.id : place.session?.id,
        history: place.history,
        contextItems: items.length,
        omittedItems: omitted,
        truncation,
        remarks: [],
      };
      witness?.placed(place.history);
      const isBegun = known !== "unknown";
      const isRetold = isBegun || memo !== undefined || key !== undefined;
      const keepsake: Keepsake = { owner, about, memo, background: known === "in background", isRetold };
      const turn: PlacedTurn = { ask, caller, place, keepsake, isKept, isBegun, leave, finish };
      if (isNamed(turn)) running.set(id, { owner, over: over.promise });
      const settling = createSettling(settlingParts, turn);
      const events = frame(id, askAdapter(ask, caller, items, about), settling);
      return { about, context, events: leaveOnReturn(events, settling.leaveEarly, finish) };
    } catch (thrown) {
      leave();
      finish();
      throw thrown;
    }
  }

  /** What the adapter says. What it tells of itself is put to what is known of the turn. */
  function askAdapter(
    ask: Ask<Item>,
    { turnId: id, signal, trace }: Caller,
    items: readonly Item[],
    about: GrowingAbout,
  ) {
    const { model, settings } = ask;
    // Whoever comes back for it has no whole answer to wait for, and a stream may take its time.
    const streams = ask.stream || ask.background === true;
    const turn: Turn = { id, model, items, settings, stream: streams, trace };
    const tell: Tell = (remark) => {
      if (remark.type === "asked") about.adapter = remark.adapter;
      else about.remarks.push(remark);
    };
    const stream = (asked: Turn) => adapter.stream(asked, signal, tell);
    return ask.compacts === true ? summarise(turn, ask.itemsParam, stream) : stream(turn);
  }

  return {
    async answer(ask, caller) {
      if (isClosing) throw drainingError();
      checkSize(ask, limits(), ask.settings.tools);
      // What it names may be gone when a request is repeated, so a key is looked for first.
      if (caller.key !== undefined) return once(ask, caller, caller.key);
      const resolved = await resolve(ask, caller.owner);
      // Nobody would wait for it, or call it off.
      if (isClosing) throw drainingError();
      if (ask.background !== true) return begin(resolved, caller);
      return (await inBackground(resolved, caller)).join(caller.signal, ask.stream);
    },
    async checkContinued(ask, owner) {
      await findContinued(store, owner, ask);
    },
    async countTokens(ask, caller) {
      checkSize(ask, limits(), ask.settings.tools);
      const { turnId: id, owner, signal } = caller;
      const resolved = await resolve(ask, owner);
      const unqueued = { ...placing, queue: noQueue, unkept: new Map() };
      const place = await findPlace(unqueued, resolved, caller, []);
      const { model, settings, stream } = ask;
      return countTokens(parts, { id, model, items: assembleContext(place, resolved), settings, stream }, signal);
    },
    ...createRecall({ store, lives, elsewhere }),
    conversations: createConversations({ ...placing, limits, now }),
    load: () => ({ waiting: queue.waiting(), live: lives.count() }),
    forgetOld: () => lives.forgetOld(),
    async endLeft(before) {
      const isOld = (createdAt: Date) => before === undefined || createdAt < before;
      await store.endRunning(interrupted, now(), ({ id, createdAt }) => !lives.has(id) && isOld(createdAt));
    },
    async close(overdue) {
      isClosing = true;
      await lives.close(overdue);
      await Promise.race([Promise.all(open), overdue]);
    },
  };
}

/** Who takes no turn of a thread has nobody to wait for. */
const noQueue: Queue = { enter: async () => () => {}, isFree: () => true, isIdle: () => true, waiting: () => 0 };
