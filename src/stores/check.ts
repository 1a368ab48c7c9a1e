/** Finds out whether turns can be kept now: the last write tells, and if it is too long ago, one is made to see. */
import type { GatewayError } from "../core/errors.ts";
import type { SessionStore } from "../core/store.ts";

/** What came of the tries to write something. */
export interface Outcome {
  /** When something was kept last. */
  keptAt?: Date;
  /** Why nothing was kept, the last time that it was so. */
  failure?: { readonly at: Date; readonly error: GatewayError };
}

export interface CheckParts {
  readonly outcome: Outcome;
  readonly now: () => Date;
  /** Throws what can be seen at once. */
  look(): void;
  /** Writes something, and more where a failure has to be overcome. */
  write(overcomes: boolean): Promise<unknown>;
}

/** Load balancers ask every few seconds and every turn asks before its model, so it writes seldom, and once for all who ask. */
export function createCheck({ outcome, now, look, write }: CheckParts): SessionStore["check"] {
  let overcome: typeof outcome.failure;
  let trial: Promise<void> | undefined;

  async function tryToWrite(): Promise<void> {
    const { failure } = outcome;
    await write(failure !== overcome);
    overcome = failure;
  }

  function isYounger(at: Date, ms: number): boolean {
    const age = now().getTime() - at.getTime();
    // A clock that was set back tells nothing.
    return age >= 0 && age < ms;
  }

  return async () => {
    look();
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
