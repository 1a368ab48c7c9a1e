/** `portico sessions …`: the operator's view of the store, whether a gateway runs or not. */
import type { Group } from "./command.ts";
import { exportSessions } from "./sessions/export.ts";
import { importSessions } from "./sessions/import.ts";
import { list } from "./sessions/list.ts";
import { prune } from "./sessions/prune.ts";
import { remove } from "./sessions/remove.ts";
import { show } from "./sessions/show.ts";

export const sessions: Group = {
  summary: "List, show, export, import, delete or prune stored sessions.",
  commands: { list, show, export: exportSessions, import: importSessions, delete: remove, prune },
};
