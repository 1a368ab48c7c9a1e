/** `portico sessions prune`: applies the configured retention now. */
import { statSync } from "node:fs";
import type { Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";
import { count } from "./text.ts";

export const prune: Command = {
  summary: "Apply the configured retention now.",
  usage: "sessions prune [--config FILE]",
  options: configOption,
  notes: [
    "Deletes what gateway.sessions.ttl, max_sessions_per_owner, idempotency_ttl and events_ttl no longer keep.",
    "A running gateway does so by itself, every gateway.sessions.prune_interval_ms.",
  ],
  async run(given, terminal) {
    return withStore(given, terminal, nothingToDo, async ({ store, file, config }) => {
      const { pruneAll, toPruneRules } = await import("../../prune.ts");
      const before = sizeOf(file);
      const { sessions, turns } = await pruneAll(store, toPruneRules(config, terminal.now()));
      const shrunk = Math.max(0, before - sizeOf(file));
      // A store also shrinks when its log is checkpointed.
      const size = sessions + turns > 0 && shrunk > 0 ? ` The store is ${shrunk} bytes smaller.` : "";
      terminal.print(`Deleted ${count(sessions, "session")} and ${count(turns, "turn")}.${size}`);
      return 0;
    });
  },
};

function nothingToDo(): void {}

/** With its log, a part of the store until it is checkpointed. */
function sizeOf(file: string | undefined): number {
  if (file === undefined) return 0;
  return [file, `${file}-wal`].reduce((size, each) => size + (statSync(each, { throwIfNoEntry: false })?.size ?? 0), 0);
}
