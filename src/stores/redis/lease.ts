/** A gateway's lease: a key that expires by itself when the gateway dies, and tells Redis its newest connection. */
import { randomBytes } from "node:crypto";
import type { Connection } from "./connection.ts";
import { scripts } from "./scripts.ts";

export interface Lease {
  /** What every write shows; empty until claimed, which the command line never does. */
  fence(): string;
  claim(connection: Connection): Promise<void>;
  /** Renews it on a new connection. What was sent before and arrives only now is fenced off. */
  reconnect(connection: Connection): void;
  /** Takes it again if Redis has lost it, before anything else is sent. True if it is taken by then. */
  retake(connection: Connection): Promise<boolean>;
  release(connection: Connection): Promise<void>;
}

export interface LeaseTimes {
  readonly leaseMs: number;
  readonly renewMs: number;
}

/** `whenRenewed` is called after each request to renew it, before anything else is sent. */
export function createLease({ leaseMs, renewMs }: LeaseTimes, whenRenewed: () => void): Lease {
  const name = randomBytes(16).toString("base64url");
  let connections = 0;
  let renewal: NodeJS.Timeout | undefined;
  const shown = () => `${name}:${connections}`;
  const ask = (connection: Connection) => connection.run(scripts.renew, [shown(), String(leaseMs)]);

  function renew(connection: Connection): void {
    if (renewal === undefined || !connection.isReady()) return;
    // Whoever writes is told what is wrong; the next interval retries.
    ask(connection).catch(() => {});
    whenRenewed();
  }

  return {
    fence: () => (renewal === undefined ? "" : shown()),
    async claim(connection) {
      if (renewal !== undefined) return;
      await ask(connection);
      renewal = setInterval(renew, renewMs, connection).unref();
    },
    reconnect(connection) {
      connections += 1;
      renew(connection);
    },
    async retake(connection) {
      return renewal !== undefined && (await ask(connection)) === 1;
    },
    async release(connection) {
      if (renewal === undefined) return;
      clearInterval(renewal);
      // Without Redis there is nothing to release, and it expires by itself.
      await connection.run(scripts.release, [shown()]).catch(() => {});
    },
  };
}
