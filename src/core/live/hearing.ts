/** Who hears how a turn ends: the caller that began it or, if that one is gone, the witness. */
import { toGatewayError } from "../errors.ts";
import type { Event, Events } from "../event.ts";
import type { Reply } from "../gateway.ts";
import type { About } from "../ports.ts";
import type { EndedAlone, Witness } from "../witness.ts";
import { leaveOnReturn } from "../leaving.ts";
import { join, type LiveTurn, type Source } from "./live.ts";
import { calledOff } from "./recall.ts";

export interface Hearing {
  /** Begins the turn, and notes how it ends. */
  note(begin: () => Promise<Source>): Promise<Source>;
  /**
   * Joins the turn for the caller that began it. One that `stays` hears the end, or leaves before; any other has what
   * it came for once the turn has its place.
   */
  join(turn: Pick<LiveTurn, "placed" | "follow">, signal: AbortSignal, stays: boolean): Promise<Reply>;
}

export interface HearingParts {
  readonly turnId: string;
  readonly owner: string;
  readonly now: () => Date;
  readonly witness: Pick<Witness, "endedAlone"> | undefined;
}

type End = Omit<EndedAlone, "turnId" | "owner">;

export function createHearing({ turnId, owner, now, witness }: HearingParts): Hearing {
  const since = +now();
  let end: End | undefined;
  let isHeard = false;
  let isLeft = false;

  function tell(): void {
    if (end === undefined || !isLeft || isHeard) return;
    isHeard = true;
    witness?.endedAlone({ turnId, owner, ...end });
  }

  function leave(): void {
    isLeft = true;
    tell();
  }

  function over(about: About | undefined, how: Pick<End, "usage" | "failure">): void {
    end = { about, ...how, ms: +now() - since };
    tell();
  }

  async function* listen(about: About, events: Events): Events {
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

  async function* hear(events: Events): Events {
    try {
      for await (const batch of events) {
        isHeard ||= batch.at(-1)?.type === "turn-end";
        yield batch;
      }
    } catch (thrown) {
      // A caller may also be too slow for the stream, and then has not heard its end.
      isHeard ||= thrown === end?.failure;
      throw thrown;
    } finally {
      leave();
    }
  }

  return {
    async note(begin) {
      try {
        const source = await begin();
        // What others run has its own listeners.
        return "follow" in source ? source : { about: source.about, events: listen(source.about, source.events) };
      } catch (thrown) {
        const failure = toGatewayError(thrown);
        over(undefined, { failure });
        throw failure;
      }
    },
    async join(turn, signal, stays) {
      try {
        const { about, events } = await join(turn, signal);
        if (stays) return { about, events: leaveOnReturn(hear(events), leave) };
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
  return { usage, failure: status === "cancelled" ? calledOff() : error };
}
