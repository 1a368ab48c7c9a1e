/** What only the writer of a SQLite file does beside turns. */
import { cold, createTables, type Prepare } from "./cold.ts";
import type { Step } from "./deletions.ts";

/** How many pages one step gives back. */
const stepPages = 256;

export function createUpkeep(prepare: Prepare) {
  const { one, run } = createTables(prepare);
  const countFree = async () =>
    (await one<{ readonly freelist_count: number }>("PRAGMA freelist_count"))?.freelist_count;
  return {
    /** Whether anything of this size can be written. */
    async probe({ bytes }: { readonly bytes: number }): Promise<void> {
      await run(cold.setNote, "probe", "0".repeat(bytes));
    },

    /** Space that is free goes back to the disk. */
    async giveBack(): Promise<Step> {
      const before = await countFree();
      if (before !== 0) prepare(`PRAGMA incremental_vacuum(${stepPages})`).all();
      const left = await countFree();
      return { turns: 0, isDone: left === 0 || left === before };
    },
  };
}

/** Numbers are given by the file, for the command line may make sessions beside us; not those of sessions half removed. */
export const nextNumber =
  "1 + max((SELECT coalesce(max(n), 0) FROM session), (SELECT coalesce(max(n), 0) FROM doomed))";
