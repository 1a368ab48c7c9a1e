/** A turn that continues without its caller: pulled to its end into a log that anyone may follow. */
import { cancelledError, GatewayError, toGatewayError } from "../errors.ts";
import type { Event, Events, OutputItem } from "../event.ts";
import type { Caller, Reply } from "../gateway.ts";
import type { Item } from "../item.ts";
import { leaveOnReturn } from "../leaving.ts";
import type { EndedTurn, Observer } from "../observer.ts";
import type { About } from "../ports.ts";
import { unlessAborted } from "../unless-aborted.ts";
import { createLog, type Follow, type Log, type LogLimits } from "./log.ts";

export interface LiveTurn extends Pick<Caller, "owner" | "turnId" | "memo"> {
  /** A turn with a key moves to the background once it is known to be new, if its caller wants that. */
  kind: LiveTurnKind;
  /** Where it can be followed; rejects if it failed before it had a place. */
  readonly placed: Promise<Followable>;
  readonly progress: Progress;
  /** Resolves when nothing more will be said, however it ended. */
  readonly ended: Promise<void>;
  /** Its events so far. */
  readonly log: Pick<Log, "size" | "touch">;
  /**
   * Joins it for the caller that began it. One that `waitsForEnd` gets the end, or leaves before; any other has what it
   * came for once the turn has its place. The end of a turn whose caller has left goes to the observer.
   */
  join(signal: AbortSignal, waitsForEnd?: boolean): Promise<Reply>;
  cancel(reason: GatewayError): void;
  /** Aborted when it is cancelled. */
  readonly signal: AbortSignal;
  /** Calls this when it ends, with how it ended, if it was not found elsewhere: to release what it has acquired. */
  atEnd(release: ((end: End | undefined) => void) | undefined): void;
}

export type LiveTurnKind = "background" | "keyed";

interface Progress {
  readonly status: "queued" | "running";
  /** What it was asked, known once it has its place. */
  readonly input: readonly Item[];
  /** What was said so far: whole items. */
  readonly items: readonly OutputItem[];
}

type End = Omit<EndedTurn, "turnId" | "owner">;

/** A turn that anyone may follow, wherever it runs or ran. */
export interface Followable {
  readonly about: About;
  /** Whether its events are known exactly as they were told, so that they can be resumed in the middle. */
  readonly isExact: boolean;
  /** All its events, past and future. */
  readonly follow: Follow;
  /** About how many characters each who follows it keeps in memory; absent: what they follow is kept anyway. */
  readonly size?: (() => number) | undefined;
}

/** Gives the turn its events, to be pulled once and logged; or finds that it can be followed elsewhere. */
export type BeginLiveTurn = (live: LiveTurn) => Promise<Begun | Followable>;

export interface Begun extends Pick<Reply, "about" | "events"> {
  readonly input: readonly Item[];
}

export interface LiveTurnLimits extends LogLimits {
  /** How long a turn may run without a follower. */
  readonly maxUnattendedMs: number;
}

export interface LiveTurnParts {
  /** Counts on steadily, however the clock is set: a clock that leaps must not end turns. */
  readonly elapsedMs: () => number;
  /** Absent: nobody wants to know. */
  readonly observer?: Pick<Observer, "endedWithoutCaller"> | undefined;
}

/** Starts the turn at once; it is pulled to its end whether anybody follows or not, but not for ever. */
export function startLiveTurn(
  { owner, turnId, memo }: Caller,
  kind: LiveTurnKind,
  begin: BeginLiveTurn,
  limits: LiveTurnLimits,
  { elapsedMs, observer }: LiveTurnParts,
): LiveTurn {
  const { maxUnattendedMs } = limits;
  const since = elapsedMs();
  const controller = new AbortController();
  const log = createLog(limits, elapsedMs);
  controller.signal.addEventListener("abort", log.cancel);
  /** All are called, newest first, even if one throws, which nobody awaits. */
  const releases = new DisposableStack();
  const items: OutputItem[] = [];
  let progress: Progress = { status: "queued", input: [], items };
  let end: End | undefined;
  const delivery = createDelivery((told) => observer?.endedWithoutCaller({ turnId, owner, ...told }));
  const placing = Promise.withResolvers<Followable>();
  placing.promise.catch(() => {}); // followers get it; there may be none
  const ending = Promise.withResolvers<void>();
  // Called last, whatever failed: a turn that never ended would keep the gateway from closing.
  releases.defer(ending.resolve);

  async function run(begin: BeginLiveTurn): Promise<void> {
    let about: About | undefined;
    try {
      const source = await begin(live);
      about = source.about;
      if ("follow" in source) placing.resolve(source);
      else await pull(source);
      log.end(undefined);
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      placing.reject(failure);
      over(about, { failure });
      log.end(failure);
    }
    releases.dispose();
  }

  async function pull({ about, events, input }: Begun): Promise<void> {
    progress = { ...progress, input };
    placing.resolve({ about, isExact: true, follow: log.follow });
    for await (const batch of events) {
      for (const event of batch) {
        if (event.type === "turn-start") progress = { ...progress, status: "running" };
        if (event.type === "item-end") items.push(event.item);
        if (event.type === "turn-end") over(about, toOutcome(event));
      }
      log.add(batch);
      await log.room();
      // A silent adapter is ended by its own limits, so it is enough to check when something is said.
      if (log.unattendedMs() > maxUnattendedMs) controller.abort(unattended(maxUnattendedMs));
    }
  }

  function over(about: About | undefined, outcome: Outcome): void {
    end = { about, ...outcome, ms: elapsedMs() - since };
    delivery.over(end);
  }

  const live: LiveTurn = {
    owner,
    turnId,
    memo,
    kind,
    placed: placing.promise,
    get progress() {
      return progress;
    },
    ended: ending.promise,
    async join(signal, waitsForEnd = true) {
      try {
        const { about, follow, size } = await unlessAborted(placing.promise, signal);
        const reply = { about, events: follow(signal), size: size?.() };
        if (waitsForEnd) return { ...reply, events: delivery.deliver(reply.events) };
        delivery.leave();
        return reply;
      } catch (thrown) {
        if (!signal.aborted) throw thrown;
        delivery.leave();
        throw signal.reason;
      }
    },
    log,
    cancel: (reason) => controller.abort(reason),
    signal: controller.signal,
    atEnd(release) {
      if (release !== undefined) releases.defer(() => release(end));
    },
  };
  void run(begin);
  return live;
}

/** Delivers how a turn ends: to the caller that began it or, if that one has left, to `report`. */
function createDelivery(report: (end: End) => void) {
  let end: End | undefined;
  let caller: "waits" | "left" | "told" = "waits";

  function reportIfLeft(): void {
    if (end === undefined || caller !== "left") return;
    caller = "told";
    report(end);
  }

  function leave(): void {
    if (caller === "waits") caller = "left";
    reportIfLeft();
  }

  async function* relay(events: Events): Events {
    try {
      for await (const batch of events) {
        if (batch.at(-1)?.type === "turn-end") caller = "told";
        yield batch;
      }
    } catch (thrown) {
      // A caller may also be too slow for the stream, and then has not got its end.
      if (thrown === end?.failure) caller = "told";
      throw thrown;
    } finally {
      leave();
    }
  }

  return {
    over(given: End): void {
      end = given;
      reportIfLeft();
    },
    leave,
    deliver: (events: Events): Events => leaveOnReturn(relay(events), leave),
  };
}

type Outcome = Pick<End, "usage" | "failure">;

/** The outcome in a turn's last event. */
export function toOutcome({ answer }: Extract<Event, { type: "turn-end" }>): Outcome {
  const { status, usage, error } = answer;
  return { usage, failure: status === "cancelled" ? cancelledError() : error };
}

function unattended(maxUnattendedMs: number): GatewayError {
  return new GatewayError(
    "interrupted",
    `Nobody followed this turn for ${maxUnattendedMs} ms, the longest that a turn may run unattended (gateway.sessions.max_unattended_ms).`,
  );
}
