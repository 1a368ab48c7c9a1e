/** Whether turns can be stored in the file now. */
import type { SessionStore } from "../../core/store.ts";
import { createCheck } from "../check.ts";
import { storeClosed } from "../refusals.ts";
import { type Access, onceForAll } from "./access.ts";

export function createFileCheck(
  { database, prepare, group, now }: Access,
  checkFile: () => void,
): SessionStore["check"] {
  const write = prepare(`
    INSERT INTO meta (key, value) VALUES ('checked', zeroblob(?)) ON CONFLICT (key) DO UPDATE SET value = excluded.value`);
  const lookAtFile = onceForAll(checkFile);
  return createCheck({
    outcome: group.outcome,
    now,
    look() {
      if (!database.isOpen) throw storeClosed();
      lookAtFile();
    },
    write: (overcomes) => group.add(() => write.run(overcomes ? roomBytes : 0)),
  });
}

/**
 * A small write may still fit on a full disk, so only one as large as a turn proves that a failure is over: a turn's
 * own page and those of the indexes are 40 KB.
 */
const roomBytes = 65_536;
