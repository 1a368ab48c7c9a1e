/** Whether turns can be stored in Redis now. */
import type { SessionStore } from "../../core/store.ts";
import { createCheck } from "../check.ts";
import { storeClosed } from "../refusals.ts";
import type { Access } from "./access.ts";
import * as scripts from "./scripts.ts";
import { unreachable } from "./trouble.ts";

export function createServerCheck(access: Access, isReady: () => boolean): SessionStore["check"] {
  const { outcome, now } = access;
  return createCheck({
    outcome,
    now,
    look() {
      if (!access.isOpen()) throw storeClosed();
      if (!isReady()) throw unreachable(outcome.failure?.error.cause);
    },
    write: () => access.write(scripts.tryToWrite, []),
  });
}
