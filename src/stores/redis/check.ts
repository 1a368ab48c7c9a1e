/** Whether turns can be kept in Redis now. */
import type { SessionStore } from "../../core/store.ts";
import { createCheck } from "../check.ts";
import { storeClosed } from "../refusals.ts";
import type { Ground } from "./ground.ts";
import { scripts } from "./scripts.ts";
import { unreachable } from "./trouble.ts";

export function createServerCheck(ground: Ground, isReady: () => boolean): SessionStore["check"] {
  const { outcome, now } = ground;
  return createCheck({
    outcome,
    now,
    look() {
      if (!ground.isOpen()) throw storeClosed();
      if (!isReady()) throw unreachable(outcome.failure?.error.cause);
    },
    write: () => ground.write(scripts.tryToWrite, []),
  });
}
