/** What the front door and embedding programs ask: turns, those that outlive their caller, and what became of them. */
import type { Adapter } from "./adapter.ts";
import { type Additions, createAdditions } from "./additions.ts";
import { GatewayError, toGatewayError } from "./errors.ts";
import { followFar, outlast, toPromised, TurnLost } from "./far.ts";
import type { Heading } from "./heading.ts";
import { createLines } from "./lines.ts";
import { Live, type Promised } from "./live.ts";
import { type Recalled, toRecalled } from "./recalled.ts";
import { retell } from "./retell.ts";
import type { Node } from "./place.ts";
import type { Conversations, Far, Idempotency, Records, Store, StoredTurn } from "./store.ts";
import type { Answer, Ask } from "./turn.ts";
import { type Caller, createWay, type Listener, type Ports, type Said } from "./way.ts";
import { countTurn } from "./window.ts";

export type { Heading } from "./heading.ts";
export type { Recalled } from "./recalled.ts";
export type { Caller, Listener, Said } from "./way.ts";

export interface GatewayPorts extends Ports {
  readonly store: Store & Records & Pick<Conversations, "forget" | "createConversation" | "append">;
  readonly adapter: Adapter;
  readonly newKey: () => string;
  readonly keyMs: () => number;
  readonly maxBackground: () => number;
  /** A turn is over whose caller has left, or never waited: nobody else tells of it. */
  readonly endedAlone: (turn: EndedAlone) => void;
}

interface EndedAlone {
  readonly kind: "turn";
  readonly key: string;
  readonly owner: string;
  readonly trace: Caller["trace"];
  readonly heading: Heading | undefined;
  readonly answer: Answer | undefined;
  readonly failure: GatewayError | undefined;
  readonly ms: number;
}

export interface Gateway extends Additions {
  /** Throws what went wrong before the first word. A background turn that nobody listens to is only promised. */
  answer(ask: Ask, caller: Caller, listener?: Listener): Promise<Said | Promised>;
  recall(owner: string, key: string): Promise<Promised | Recalled | undefined>;
  /** Tells a turn from its beginning, whether it runs or is over. Undefined: there is none. `resumes`: throws if it can only be told whole. */
  follow(
    owner: string,
    key: string,
    listener: Listener,
    signal: AbortSignal,
    resumes: boolean,
  ): Promise<Said | undefined>;
  /** How many tokens the model would read: counted by its adapter if that can, or estimated. */
  count(ask: Ask, caller: Caller): Promise<number>;
  /** Throws if it does not run in the background. Undefined: there is none. */
  cancel(owner: string, key: string): Promise<Recalled | undefined>;
  forget(owner: string, key: string): Promise<boolean>;
  /** Ends the turns that nobody has followed for an hour. */
  sweep(): void;
  readonly running: number;
  /** Resolves when no turn runs that outlives its caller. */
  settled(): Promise<void>;
  /** Turns that stand in line. */
  readonly waiting: number;
  /** What the turns that run continue. */
  readonly continued: Iterable<Node>;
  /** Interrupts what still runs. */
  close(): Promise<void>;
}

export const nobody: Listener = { begin() {}, tell: () => undefined };
const unheardMs = 3_600_000;
/** How long to wait for another process to end a turn after a request to stop, which it sees within a second. */
const cancelMs = 10_000;

interface Named {
  readonly fingerprint: string;
  /** The turn, here or in another process, or what the key was used for before. */
  readonly found: Promise<Live | Far | StoredTurn>;
}

export function createGateway(ports: GatewayPorts): Gateway {
  const { store, now, newKey } = ports;
  const { others } = store;
  const lines = createLines(others?.claims);
  const way = createWay(ports, lines);
  const live = new Map<string, Live>();
  const named = new Map<string, Named>();
  others?.listen({
    stop: (key, reason = cancelled()) => live.get(key)?.stop(reason),
    heard: (key) => live.get(key)?.look(),
  });

  return {
    ...createAdditions(ports, lines),
    answer,
    async recall(owner, key) {
      const running = await find(owner, key);
      if (running !== undefined && isPlacedInBackground(running)) return promisedOf(running, never);
      const stored = await store.turn(owner, key);
      return stored && toRecalled(stored);
    },
    async follow(owner, key, listener, signal, resumes) {
      const running = await find(owner, key);
      if (running !== undefined) return follow(running, listener, signal, true);
      const stored = await store.turn(owner, key);
      if (resumes && stored !== undefined && stored.record?.deltas === undefined) throw eventsExpired("starting_after");
      return stored && tellAgain(stored, listener, true);
    },
    async count(ask, caller) {
      const turn = await way.show(ask, caller, newKey());
      // An adapter whose server is down cannot count now.
      const counted = await ports.adapter.countTokens?.(turn, caller.signal).catch(() => undefined);
      return counted ?? countTurn(turn, ports.countText);
    },
    async cancel(owner, key) {
      const running = await find(owner, key);
      if (running !== undefined && isPlacedInBackground(running)) await stop(running, cancelled());
      const stored = await store.turn(owner, key);
      if (stored === undefined) return undefined;
      if (stored.record?.isBackground === true) return toRecalled(stored);
      throw new GatewayError("not_cancellable", "Cannot cancel a synchronous response.");
    },
    async forget(owner, key) {
      const running = await find(owner, key);
      // What was heard of it is kept with its end.
      if (running !== undefined) await stop(running, new GatewayError("cancelled", "The turn was deleted."));
      return (await store.forget(owner, key)) || running !== undefined;
    },
    sweep() {
      const last = now() - unheardMs;
      for (const turn of live.values())
        if (turn.heardAt < last) turn.stop(new GatewayError("cancelled", "Nobody followed the turn for an hour."));
    },
    get running() {
      return live.size;
    },
    async settled() {
      while (live.size > 0) await Promise.all(Array.from(live.values(), ({ ended }) => ended));
    },
    get waiting() {
      return lines.waiting;
    },
    continued: way.continued,
    async close() {
      const message = "The gateway was stopped while this turn ran. Send the request again.";
      for (const turn of live.values()) turn.stop(new GatewayError("interrupted", message));
      await Promise.all([...live.values()].map(({ ended }) => ended));
    },
  };

  async function answer(ask: Ask, caller: Caller, listener?: Listener): Promise<Said | Promised> {
    if (caller.idempotency === undefined && ask.background !== true) {
      const key = newKey();
      listener?.enter?.(key);
      return way.run(ask, caller, key, listener ?? nobody);
    }
    const { idempotency } = caller;
    if (idempotency === undefined) return attend(start(ask, caller, newKey(), undefined), ask, caller, listener, false);
    // Nothing is awaited between the look-up of a key and its start.
    const name = `${caller.owner.length} ${caller.owner}${idempotency.key}`;
    const twin = named.get(name);
    if (twin !== undefined) checkFingerprint(twin.fingerprint, idempotency);
    const { fingerprint } = idempotency;
    const entry = twin ?? { fingerprint, found: findOrStart(ask, caller, idempotency, name) };
    named.set(name, entry);
    try {
      const found = await entry.found;
      const isFirst = twin === undefined && found instanceof Live;
      return await attend(found, ask, caller, listener, !isFirst);
    } catch (thrown) {
      if (!(thrown instanceof TurnLost)) throw thrown;
      // The process that answered it is dead, and this reader was told nothing.
      return answer(ask, caller, listener);
    }
  }

  /** A turn that runs, here or elsewhere. */
  async function find(owner: string, key: string): Promise<Live | Far | undefined> {
    // After a silence others may have told the turn as interrupted.
    if (live.has(key)) await others?.awake();
    const turn = live.get(key);
    if (turn !== undefined) return turn.owner === owner ? turn : undefined;
    return others?.find(owner, key);
  }

  function follow(turn: Live | Far, listener: Listener, signal: AbortSignal, isRepeated: boolean): Promise<Said> {
    if (turn instanceof Live) return turn.follow(listener, signal, isRepeated);
    return followFar(turn, listener, signal, isRepeated, now);
  }

  /** Answers one caller from a turn that several callers may share. */
  async function attend(
    turn: Live | Far | StoredTurn,
    ask: Ask,
    { signal, resumes }: Caller,
    listener: Listener | undefined,
    isRepeated: boolean,
  ): Promise<Said | Promised> {
    const hasEvents = isRunning(turn) || turn.record?.deltas !== undefined;
    if (resumes !== undefined && !(hasEvents && resumes(turn.key))) throw eventsExpired("Last-Event-ID");
    listener?.enter?.(turn.key);
    if (!isRunning(turn)) return tellAgain(turn, listener ?? nobody, isRepeated);
    if (ask.background !== true || listener !== undefined) return follow(turn, listener ?? nobody, signal, isRepeated);
    return { ...(await promisedOf(turn, signal)), status: "queued", isRepeated };
  }

  async function findOrStart(
    ask: Ask,
    caller: Caller,
    idempotency: Idempotency,
    name: string,
  ): Promise<Live | Far | StoredTurn> {
    const { owner } = caller;
    const key = newKey();
    try {
      const elsewhere = await others?.reserve({ key, owner }, idempotency);
      if (elsewhere !== undefined) {
        named.delete(name);
        checkFingerprint(elsewhere.fingerprint ?? "", idempotency);
        return elsewhere;
      }
      const stored = await store.keyed(owner, idempotency.key, now() - ports.keyMs());
      if (stored === undefined && caller.resumes !== undefined) throw eventsExpired("Last-Event-ID");
      if (stored === undefined) return start(ask, caller, key, name);
      release();
      checkFingerprint(stored.fingerprint, idempotency);
      return stored;
    } catch (thrown) {
      release();
      throw thrown;
    }

    function release(): void {
      named.delete(name);
      others?.withdraw(key);
    }
  }

  function start(ask: Ask, caller: Caller, key: string, name: string | undefined): Live {
    const { owner, idempotency, trace } = caller;
    const startedAt = now();
    const isBackground = ask.background === true;
    if (live.size >= ports.maxBackground()) throw tooMany(ports.maxBackground());
    const release = caller.hold?.();
    const turn = new Live({
      key,
      owner,
      isBackground,
      now,
      async announce(heading, waits, { echo, items }) {
        const { createdAt, model, session } = heading;
        const { userHint } = caller;
        if (isBackground) await store.begin({ key, owner, session, createdAt, model, echo, userHint });
        const isReserved = idempotency !== undefined;
        await others?.announce({ key, owner, userHint, isReserved }, { heading, waits, isBackground, echo, items });
      },
      publish: (news) => others?.publish(key, news),
      record: (deltas, heading) => ({
        isBackground,
        idempotency,
        isUnnamed: ask.keep === "no",
        deltas,
        told: heading?.told ?? "new",
        contextItems: heading?.contextItems ?? 0,
      }),
      run: (listener, signal, recorder) => way.run(ask, { ...caller, signal }, key, listener, recorder),
    });
    live.set(key, turn);
    void forgetWhenOver();
    return turn;

    async function forgetWhenOver(): Promise<void> {
      await turn.ended;
      const { heading, answer, failure: thrown, isAttended } = turn;
      live.delete(key);
      others?.withdraw(key);
      if (name !== undefined) named.delete(name);
      release?.();
      if (isAttended || heading === undefined) return;
      const failure = thrown === undefined ? undefined : toGatewayError(thrown);
      ports.endedAlone({ kind: "turn", key, owner, trace, heading, answer, failure, ms: now() - startedAt });
    }
  }
}

/** Resolves when it has ended. */
async function stop(turn: Live | Far, reason: GatewayError): Promise<void> {
  if (turn instanceof Live) {
    turn.stop(reason);
    return turn.ended;
  }
  await turn.cancel();
  const late = AbortSignal.timeout(cancelMs);
  await outlast(turn, late);
  if (late.aborted) throw new GatewayError("overloaded", notEnded, { retryAfterSeconds: 1 });
}

const notEnded = "The process that runs this turn was told to stop it, and has not ended it yet. Ask again shortly.";

const isRunning = (turn: Live | Far | StoredTurn): turn is Live | Far => turn instanceof Live || "news" in turn;

const isPlacedInBackground = (turn: Live | Far): boolean =>
  turn instanceof Live ? turn.isBackground && turn.heading !== undefined : turn.placed?.isBackground === true;

/** The turn, once it has its place. */
const promisedOf = (turn: Live | Far, signal: AbortSignal): Promise<Promised> =>
  turn instanceof Live ? turn.placed() : toPromised(turn, signal);

const never = new AbortController().signal;

function tellAgain(turn: StoredTurn, listener: Listener, isRepeated: boolean): Said {
  const { heading, answer } = toRecalled(turn);
  listener.begin(heading, isRepeated);
  const { deltas, isBackground = false } = turn.record ?? {};
  void listener.tell(retell(turn.key, answer, deltas, isBackground));
  return { heading, answer, isRepeated };
}

function eventsExpired(param: string): GatewayError {
  const message =
    "The events that follow are no longer available one by one. Ask for the whole answer, without that number.";
  return new GatewayError("events_expired", message, { param });
}

function checkFingerprint(known: string, { fingerprint }: Idempotency): void {
  if (known === fingerprint) return;
  throw new GatewayError(
    "idempotency_conflict",
    "This Idempotency-Key was used with another request. Use a new key for a new request.",
  );
}

const cancelled = (): GatewayError => new GatewayError("cancelled", "The turn was cancelled.");

function tooMany(most: number): GatewayError {
  const message = `${most} turns run in the background already (gateway.sessions.max_background_turns). Try again shortly.`;
  return new GatewayError("overloaded", message, { retryAfterSeconds: 1 });
}
