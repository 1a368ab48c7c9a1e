/** Finds out whether turns can be kept now: the last write tells, and if it is too long ago, one is made to see. */
import type { SessionStore } from "../../core/store.ts";
import { isClosed } from "../refusals.ts";
import type { Ground } from "./ground.ts";
import { scripts } from "./scripts.ts";
import { isUnreachable } from "./trouble.ts";

/** Load balancers ask every few seconds and every turn asks before its model, so it writes seldom, and once for all who ask. */
export function createCheck(ground: Ground, isReady: () => boolean): SessionStore["check"] {
  const { outcome, now } = ground;
  let trial: Promise<unknown> | undefined;
  let overcome: typeof outcome.failure;

  async function tryToWrite(): Promise<void> {
    const { failure } = outcome;
    await ground.write(scripts.tryToWrite, []);
    overcome = failure;
  }

  function isYounger(at: Date, ms: number): boolean {
    const age = now().getTime() - at.getTime();
    // A clock that was set back tells nothing.
    return age >= 0 && age < ms;
  }

  return async () => {
    if (!ground.isOpen()) throw isClosed();
    const { failure, keptAt } = outcome;
    if (!isReady()) throw isUnreachable(failure?.error.cause);
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
