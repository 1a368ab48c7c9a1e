/** Delivers how a turn ends: to the caller that began it or, if that one is gone, to the observer. */
import { toGatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import type { Reply } from "../gateway.ts";
import type { About } from "../ports.ts";
import type { EndedTurn, Observer } from "../observer.ts";
import { leaveOnReturn } from "../leaving.ts";
import { join, type LiveTurn, type Source } from "./live.ts";
import { cancelledError } from "./recall.ts";

export interface Delivery {
  /** Begins the turn, and notes how it ends. */
  track(begin: () => Promise<Source>): Promise<Source>;
  /**
   * Joins the turn for the caller that began it. One that `waitsForEnd` gets the end, or leaves before; any other has what
   * it came for once the turn has its place.
   */
  join(turn: Pick<LiveTurn, "placed" | "follow">, signal: AbortSignal, waitsForEnd: boolean): Promise<Reply>;
}

export interface DeliveryParts {
  readonly turnId: string;
  readonly owner: string;
  readonly now: () => Date;
  readonly observer: Pick<Observer, "endedWithoutCaller"> | undefined;
}

type End = Omit<EndedTurn, "turnId" | "owner">;

export function createDelivery({ turnId, owner, now, observer }: DeliveryParts): Delivery {
  const since = +now();
  let end: End | undefined;
  let isDelivered = false;
  let isLeft = false;

  function report(): void {
    if (end === undefined || !isLeft || isDelivered) return;
    isDelivered = true;
    observer?.endedWithoutCaller({ turnId, owner, ...end });
  }

  function leave(): void {
    isLeft = true;
    report();
  }

  function over(about: About | undefined, how: Pick<End, "usage" | "failure">): void {
    end = { about, ...how, ms: +now() - since };
    report();
  }

  async function* watchEnd(about: About, events: Events): Events {
    try {
      for await (const batch of events) {
        const last = batch.at(-1);
        if (last?.type === "turn-end") over(about, toOutcome(last));
        yield batch;
      }
    } catch (thrown) {
      const failure = toGatewayError(thrown);
      over(about, { failure });
      throw failure;
    }
  }

  async function* deliver(events: Events): Events {
    try {
      for await (const batch of events) {
        isDelivered ||= batch.at(-1)?.type === "turn-end";
        yield batch;
      }
    } catch (thrown) {
      // A caller may also be too slow for the stream, and then has not got its end.
      isDelivered ||= thrown === end?.failure;
      throw thrown;
    } finally {
      leave();
    }
  }

  return {
    async track(begin) {
      try {
        const source = await begin();
        // What others run has its own listeners.
        return "follow" in source ? source : { about: source.about, events: watchEnd(source.about, source.events) };
      } catch (thrown) {
        const failure = toGatewayError(thrown);
        over(undefined, { failure });
        throw failure;
      }
    },
    async join(turn, signal, waitsForEnd) {
      try {
        const { about, events } = await join(turn, signal);
        if (waitsForEnd) return { about, events: leaveOnReturn(deliver(events), leave) };
        leave();
        return { about, events };
      } catch (thrown) {
        if (!signal.aborted) throw thrown;
        leave();
        throw signal.reason;
      }
    },
  };
}

/** The outcome in a turn's last event. */
export function toOutcome({ answer }: Extract<Event, { type: "turn-end" }>): Pick<End, "usage" | "failure"> {
  const { status, usage, error } = answer;
  return { usage, failure: status === "cancelled" ? cancelledError() : error };
}
