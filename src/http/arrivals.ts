/** Bounds all bodies that are still arriving, together; when it is too much, whoever sends the most gives way. */
import { GatewayError } from "../core/errors.ts";
import { createTally } from "../core/tally.ts";

export interface Arrivals {
  /** A body of this owner begins to arrive; `abandon` is called if it must not go on. */
  begin(owner: string, abandon: (reason: GatewayError) => void): Arrival;
  /** Abandons all that are still arriving. */
  abort(reason: GatewayError): void;
}

export interface Arrival {
  /** More has arrived: the body now takes so many bytes. */
  hold(bytes: number): void;
  /** It has arrived, or never will. */
  end(): void;
}

interface Body {
  readonly owner: string;
  readonly abandon: (reason: GatewayError) => void;
  bytes: number;
}

/**
 * `maxBytes` is read at every step, since it may change. What has arrived counts, not what was announced, because
 * announcing costs nothing. The owner of the most gives way, and of its bodies the one idle for longest, so that none
 * keeps a place without sending.
 */
export function createArrivals(maxBytes: () => number): Arrivals {
  /** The one idle for longest comes first. */
  const bodies = new Set<Body>();
  const held = createTally();

  /** Says whether it was still there. */
  function remove(body: Body): boolean {
    if (!bodies.delete(body)) return false;
    held.add(body.owner, -body.bytes);
    return true;
  }

  function abandon(body: Body, reason: GatewayError): void {
    remove(body);
    body.abandon(reason);
  }

  function makeRoom(most: number): void {
    // The last always has room: its own limit is max_body_bytes.
    while (held.total > most && bodies.size > 1) {
      const largest = held.largest();
      const slowest = bodies.values().find(({ owner }) => owner === largest);
      if (slowest === undefined) return;
      abandon(slowest, tooManyArriving(most));
    }
  }

  return {
    begin(owner, abandon) {
      const body: Body = { owner, abandon, bytes: 0 };
      bodies.add(body);
      return {
        hold(bytes) {
          if (!remove(body)) return;
          body.bytes = bytes;
          bodies.add(body);
          held.add(owner, bytes);
          makeRoom(maxBytes());
        },
        end: () => void remove(body),
      };
    },
    abort(reason) {
      for (const body of bodies) abandon(body, reason);
    },
  };
}

function tooManyArriving(most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `More than ${most} bytes of request bodies are still arriving (gateway.http.limits.max_arriving_bytes), and this token's name sends the most of them. Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
