/** Bounds all bodies that are still arriving, together; when it is too much, whoever sends the most gives way. */
import { GatewayError } from "../core/errors.ts";

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

/** What is arriving from one owner. */
interface Share {
  /** The one idle for longest comes first. */
  readonly bodies: Set<Body>;
  bytes: number;
}

/**
 * `maxBytes` is read at every step, since it may change. What has arrived counts, not what was announced, because
 * announcing costs nothing. The owner of the most gives way, so that nobody can keep the others out, and of its bodies
 * the one idle for longest, so that none keeps a place without sending.
 */
export function createArrivals(maxBytes: () => number): Arrivals {
  const shares = new Map<string, Share>();
  let count = 0;
  let held = 0;

  function add(body: Body): void {
    const share = shares.get(body.owner) ?? { bodies: new Set(), bytes: 0 };
    shares.set(body.owner, share);
    share.bodies.add(body);
    share.bytes += body.bytes;
    count += 1;
    held += body.bytes;
  }

  /** Says whether it was still there. */
  function remove(body: Body): boolean {
    const share = shares.get(body.owner);
    if (share?.bodies.delete(body) !== true) return false;
    share.bytes -= body.bytes;
    if (share.bodies.size === 0) shares.delete(body.owner);
    count -= 1;
    held -= body.bytes;
    return true;
  }

  function findSlowest(): Body | undefined {
    let largest: Share | undefined;
    for (const share of shares.values()) if (share.bytes > (largest?.bytes ?? -1)) largest = share;
    return largest?.bodies.values().next().value;
  }

  function makeRoom(most: number): void {
    // The last always has room: its own limit is max_body_bytes.
    while (held > most && count > 1) {
      const body = findSlowest();
      if (body === undefined) return;
      remove(body);
      body.abandon(tooManyArriving(most));
    }
  }

  return {
    begin(owner, abandon) {
      const body: Body = { owner, abandon, bytes: 0 };
      add(body);
      return {
        hold(bytes) {
          if (!remove(body)) return;
          body.bytes = bytes;
          add(body);
          makeRoom(maxBytes());
        },
        end: () => void remove(body),
      };
    },
    abort(reason) {
      for (const { bodies } of shares.values()) {
        for (const body of bodies) {
          remove(body);
          body.abandon(reason);
        }
      }
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
