/** Checks whether turns can be stored now: by the last write or, if that is too long ago, by a new one. */
import type { GatewayError } from "../core/errors.ts";
import type { SessionStore } from "../core/store.ts";

/** How the last writes went. */
export interface Outcome {
  /** When a write last succeeded. */
  storedAt?: Date;
  /** When a write last failed, and why. */
  failure?: { readonly at: Date; readonly error: GatewayError };
}

export interface CheckParts {
  readonly outcome: Outcome;
  readonly now: () => Date;
  /** Throws on trouble seen at once. */
  look(): void;
  /** Writes something, and more if a failure has to be overcome. */
  write(overcomes: boolean): Promise<unknown>;
}

/** Load balancers ask every few seconds and every turn before its model, so it writes rarely, once for all who ask. */
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
    const { failure, storedAt } = outcome;
    if (failure !== undefined && failure !== overcome) {
      if (isYounger(failure.at, distrustedMs)) throw failure.error;
    } else if (storedAt !== undefined && isYounger(storedAt, trustedMs)) return;
    trial ??= tryToWrite().finally(() => (trial = undefined));
    await trial;
  };
}

/** How long a successful write is proof enough. */
const trustedMs = 5_000;

/** How long after a failed write no other is tried. */
const distrustedMs = 1_000;
