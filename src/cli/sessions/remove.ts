/** `portico sessions delete`: sessions, with all that was said in them, for good. */
import type { Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";

export const remove: Command = {
  summary: "Delete sessions for good.",
  usage: "sessions delete ID… [--config FILE]",
  options: configOption,
  minPositionals: 1,
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: ["The rows are gone and their space is given back. Nothing brings them back but an archive."],
  async run(given, terminal, house) {
    return withStore(given, terminal, house, async ({ store }) => {
      let code = 0;
      for (const id of given.positionals) {
        const session = await store.readSession(id);
        if (session !== undefined && (await store.deleteSession(session.owner, id))) terminal.print(`Deleted ${id}.`);
        else {
          terminal.complain(`There is no session ${id}.`);
          code = 1;
        }
      }
      return code;
    });
  },
};
