/** A gateway's lease: a key that expires by itself when the gateway dies, and tells Redis its newest connection. */
import { randomBytes } from "node:crypto";
import type { Connection } from "./connection.ts";
import * as scripts from "./scripts.ts";

export interface Lease {
  /** What every write shows; empty until claimed, which the command line never does. */
  fence(): string;
  claim(): Promise<void>;
  /** Renews it on a new connection. What was sent before and arrives only now is fenced off. */
  reconnect(): void;
  /** Takes it again if Redis has lost it. True if it is taken by then. */
  retake(): Promise<boolean>;
  release(): Promise<void>;
}

export interface LeaseTimes {
  readonly leaseMs: number;
  readonly renewMs: number;
}

/** `whenRenewed` is called after each request to renew it, before anything else is sent. */
export function createLease(
  { run, isReady }: Connection,
  { leaseMs, renewMs }: LeaseTimes,
  whenRenewed: () => void,
): Lease {
  const name = randomBytes(16).toString("base64url");
  let connections = 1;
  let renewal: NodeJS.Timeout | undefined;
  const shown = () => `${name}:${connections}`;
  const ask = () => run(scripts.renew, [shown(), String(leaseMs)]);

  function renew(): void {
    if (renewal === undefined || !isReady()) return;
    // Whoever writes is told what is wrong; the next interval retries.
    ask().catch(() => {});
    whenRenewed();
  }

  return {
    fence: () => (renewal === undefined ? "" : shown()),
    async claim() {
      if (renewal !== undefined) return;
      await ask();
      renewal = setInterval(renew, renewMs).unref();
    },
    reconnect() {
      connections += 1;
      renew();
    },
    async retake() {
      return renewal !== undefined && (await ask()) === 1;
    },
    async release() {
      if (renewal === undefined) return;
      clearInterval(renewal);
      // Without Redis there is nothing to release, and it expires by itself.
      await run(scripts.release, [shown()]).catch(() => {});
    },
  };
}
