/** The lease of a gateway: a key that runs out by itself when it dies, and by which Redis knows its newest connection. */
import { randomBytes } from "node:crypto";
import type { Connection } from "./connection.ts";
import { scripts } from "./scripts.ts";

export interface Lease {
  /** What every write shows; nothing before it is claimed, as the command line never does. */
  fence(): string;
  claim(connection: Connection): Promise<void>;
  /** Holds on to it on a new connection. What was sent before and arrives only now is fenced off. */
  reconnect(connection: Connection): void;
  /** Takes it again where Redis has lost it, before anything else is asked. */
  retake(connection: Connection): void;
  release(connection: Connection): Promise<void>;
}

export interface LeaseTimes {
  readonly leaseMs: number;
  readonly renewMs: number;
}

/** `whenRenewed` is called each time that it was asked for again, before anything else is asked. */
export function createLease({ leaseMs, renewMs }: LeaseTimes, whenRenewed: () => void): Lease {
  const name = randomBytes(16).toString("base64url");
  let connections = 0;
  let renewal: NodeJS.Timeout | undefined;
  const shown = () => `${name}:${connections}`;
  const ask = (connection: Connection) => connection.run(scripts.renew, [shown(), String(leaseMs)]);

  function renew(connection: Connection): void {
    if (renewal === undefined || !connection.isReady()) return;
    // Whoever writes is told what is wrong; it is tried again at the next time.
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
    retake(connection) {
      if (renewal !== undefined) ask(connection).catch(() => {});
    },
    async release(connection) {
      if (renewal === undefined) return;
      clearInterval(renewal);
      // Without Redis there is nothing to give back, and it runs out by itself.
      await connection.run(scripts.release, [shown()]).catch(() => {});
    },
  };
}
