/** Bounds all bodies that are still arriving, together; the one idle for longest gives way when it is too much. */
import { GatewayError } from "../core/errors.ts";

export interface Arrivals {
  /** A body begins to arrive; `abandon` is called if it must not go on. */
  begin(abandon: (reason: GatewayError) => void): Arrival;
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
  readonly abandon: (reason: GatewayError) => void;
  bytes: number;
}

/**
 * `maxBytes` is read at every step, since it may change. What has arrived counts, not what was announced, because
 * announcing costs nothing. The body idle for longest gives way, so that nobody keeps a place without sending.
 */
export function createArrivals(maxBytes: () => number): Arrivals {
  /** The one idle for longest comes first. */
  const bodies = new Set<Body>();
  let held = 0;

  function remove(body: Body): void {
    if (bodies.delete(body)) held -= body.bytes;
  }

  function makeRoom(most: number): void {
    for (const body of bodies) {
      // The last always has room: its own limit is max_body_bytes.
      if (held <= most || bodies.size === 1) return;
      remove(body);
      body.abandon(tooManyArriving(most));
    }
  }

  return {
    begin(abandon) {
      const body: Body = { abandon, bytes: 0 };
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
        body.abandon(reason);
      }
    },
  };
}

function tooManyArriving(most: number): GatewayError {
  return new GatewayError(
    "overloaded",
    `More than ${most} bytes of request bodies are still arriving (gateway.http.limits.max_arriving_bytes), and this one was the slowest. Try again shortly.`,
    { retryAfterSeconds: 1 },
  );
}
