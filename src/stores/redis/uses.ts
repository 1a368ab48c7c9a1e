/** Tells the other gateways on a Redis what running turns here continue: all of it at once, and not for every turn. */
import type { Peers } from "../../core/peers.ts";
import type { Connection } from "./connection.ts";
import type { Lease } from "./lease.ts";
import * as scripts from "./scripts.ts";

export interface Uses extends Pick<Peers, "shareUse"> {
  /** Tells it again: turns have ended, and Redis may have lost what it was told. */
  renew(): void;
  close(): void;
}

/** What is told counts as long as the gateway has its lease. */
export function createUses({ run }: Connection, { fence }: Lease): Uses {
  let inUse: (() => ReadonlySet<string>) | undefined;
  let soon: NodeJS.Timeout | undefined;
  let told: string | undefined = nothing;

  function tell(): void {
    clearTimeout(soon);
    soon = undefined;
    const ids = JSON.stringify([...(inUse?.() ?? [])]);
    if (fence() === "" || (ids === nothing && told === nothing)) return;
    told = ids;
    // The next renewal tells it again.
    run(scripts.tellUse, [fence(), ids]).catch(() => (told = undefined));
  }

  return {
    shareUse(read) {
      inUse = read;
      return () => {
        soon ??= setTimeout(tell, soonMs).unref();
      };
    },
    renew: tell,
    close: () => clearTimeout(soon),
  };
}

const nothing = "[]";

/** Most turns take longer, and under load many begin meanwhile. */
const soonMs = 100;
