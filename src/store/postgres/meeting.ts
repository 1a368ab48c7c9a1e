/** How processes meet: through the database alone. */
import type { Others, Query } from "../../core/store.ts";
import { type Before, createClaims } from "./claims.ts";
import type { Database } from "./database.ts";
import { joinProcesses } from "./process.ts";
import { createRunning, type RunningParts } from "./running.ts";

export interface Meeting {
  readonly others: Others;
  /** What is asked ahead of these look-ups, and what its answers mean. */
  before(queries: readonly Query[]): Before;
  leave(): Promise<void>;
}

export async function meet(
  database: Database,
  lifeline: Database,
  parts: Pick<RunningParts, "secrets" | "stored">,
): Promise<Meeting> {
  const process = await joinProcesses(lifeline, async () => {
    await claims.beat();
    await running.beat();
  });
  const claims = createClaims(database, process);
  const running = createRunning({ ...parts, database, process });
  return {
    others: { ...running.port, claims: claims.port, now: process.now, slot: process.slot, awake: process.awake },
    before: claims.before,
    async leave() {
      await running.close();
      await process.leave();
    },
  };
}
