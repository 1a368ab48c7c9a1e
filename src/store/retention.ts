/** What is no longer kept goes, in transactions so small that no turn waits for them. */
import type { Pruned, PruneRules } from "../core/store.ts";
import type { Access } from "./access.ts";
import type { UnusedSession } from "./aging.ts";
import type { Step } from "./deletions.ts";

/** How many sessions one step makes invisible. */
const stepSessions = 100;

export async function prune(access: Access, rules: PruneRules): Promise<Pruned> {
  const { read, write, emptyLog } = access;
  const { idleBefore, maxTurnsPerThread, maxSessionsPerOwner, recordsBefore } = rules;
  const inUse = (): readonly number[] => [...(rules.inUse?.() ?? [])];
  let [sessions, turns] = [0, 0];

  async function dropAll(found: readonly UnusedSession[]): Promise<void> {
    for (let start = 0; start < found.length; start += stepSessions) {
      const part = found.slice(start, start + stepSessions);
      sessions += await write("dropUnused", { sessions: part, inUse: inUse() });
    }
    turns += await removeDoomed(access);
  }

  turns += await removeDoomed(access);
  if (idleBefore !== undefined) {
    turns += await repeat(() => write("age", { before: idleBefore, inUse: inUse() }));
    await dropAll(await read("idleSessions", { before: idleBefore }));
  }
  if (maxTurnsPerThread !== undefined) turns += await repeat(() => write("shorten", { most: maxTurnsPerThread }));
  if (maxSessionsPerOwner !== undefined) await dropAll(await read("surplus", { most: maxSessionsPerOwner }));
  if (recordsBefore !== undefined) await repeat(() => write("expire", { before: recordsBefore }));
  await repeat(() => write("giveBack", undefined));
  await emptyLog();
  return { sessions, turns };
}

/** Removes what is left of sessions that are gone: of those just deleted, or those that a process left that was killed. */
export function removeDoomed({ write }: Access): Promise<number> {
  return repeat(() => write("removeDoomed", undefined));
}

/** Repeats a step until it has nothing left to do. */
export async function repeat(step: () => Promise<Step>): Promise<number> {
  let turns = 0;
  for (let isDone = false; !isDone;) {
    const done = await step();
    turns += done.turns;
    ({ isDone } = done);
  }
  return turns;
}
