/** Finds out whether turns can be kept now: the last write tells, and if it is too long ago, one is made to see. */
import type { SessionStore } from "../../core/store.ts";
import { isClosed } from "../refusals.ts";
import type { Ground } from "./ground.ts";

/** Load balancers ask every few seconds and every turn asks before its model, so it writes seldom, and once for all who ask. */
export function createCheck({ database, group, now }: Ground, checkFile: () => void): SessionStore["check"] {
  const { outcome } = group;
  const write = database.prepare(`
    INSERT INTO meta (key, value) VALUES ('checked', zeroblob(?)) ON CONFLICT (key) DO UPDATE SET value = excluded.value`);
  let overcome: typeof outcome.failure;
  let trial: Promise<void> | undefined;

  async function tryToWrite(): Promise<void> {
    const { failure } = outcome;
    await group.add(() => write.run(failure === overcome ? 0 : roomBytes));
    overcome = failure;
  }

  function isYounger(at: Date, ms: number): boolean {
    const age = now().getTime() - at.getTime();
    // A clock that was set back tells nothing.
    return age >= 0 && age < ms;
  }

  return async () => {
    if (!database.isOpen) throw isClosed();
    checkFile();
    const { failure, keptAt } = outcome;
    if (failure !== undefined && failure !== overcome) {
      if (isYounger(failure.at, distrustedMs)) throw failure.error;
    } else if (keptAt !== undefined && isYounger(keptAt, trustedMs)) return;
    trial ??= tryToWrite().finally(() => (trial = undefined));
    await trial;
  };
}

/** How long a write that was kept proves that others can be. */
const trustedMs = 5_000;

/** How long a write that failed is reason enough not to try another. */
const distrustedMs = 1_000;

/**
 * Into what is left of a full disk a small write may still fit, so a failure is overcome by one as large as a turn: its own
 * page and those of the indexes are 40 KB.
 */
const roomBytes = 65_536;
