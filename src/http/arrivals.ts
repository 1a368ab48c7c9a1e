/** The bodies that are on their way: how much of them there may be in all, and which gives way when it is too much. */
import { GatewayError } from "../core/errors.ts";

export interface Arrivals {
  /** A body begins to come; `giveUp` is called when it must not go on. */
  begin(giveUp: (reason: GatewayError) => void): Arrival;
  /** Gives up all that are still on their way. */
  abort(reason: GatewayError): void;
}

export interface Arrival {
  /** The body has moved, and takes so many bytes by now. */
  hold(bytes: number): void;
  /** It is there, or will never be. */
  end(): void;
}

interface Body {
  readonly giveUp: (reason: GatewayError) => void;
  bytes: number;
}

/**
 * `maxBytes` is asked for every step: it may change. What has come counts, not what was announced, because announcing costs a
 * caller nothing; and the body that has not moved for longest gives way, so that who only holds a place does not keep it.
 */
export function createArrivals(maxBytes: () => number): Arrivals {
  /** The one that has not moved for longest is the first. */
  const bodies = new Set<Body>();
  let held = 0;

  function remove(body: Body): void {
    if (bodies.delete(body)) held -= body.bytes;
  }

  function makeRoom(most: number): void {
    for (const body of bodies) {
      // One alone always has room: its own limit is max_body_bytes.
      if (held <= most || bodies.size === 1) return;
      remove(body);
      body.giveUp(crowdedOut(most));
    }
  }

  return {
    begin(giveUp) {
      const body: Body = { giveUp, bytes: 0 };
      bodies.add(body);
      return {
        hold(bytes) {
          if (!bodies.delete(body)) return;
          bodies.add(body);
          held += bytes - body.bytes;
          body.bytes = bytes;
          makeRoom(maxBytes());
        },
        end: () => remove(body),
      };
    },
    abort(reason) {
      for (const body of bodies) {
        remove(body);
        body.giveUp(reason);
      }
    },
  };
}

function crowdedOut(most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `More than ${most} bytes of request bodies are on their way (gateway.http.limits.max_arriving_bytes), and this one was the slowest. Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
