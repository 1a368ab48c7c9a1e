/** `portico sessions delete`: deletes sessions and all that was said in them. */
import { GatewayError } from "../../core/errors.ts";
import { deleteWanted } from "../../core/wanted.ts";
import type { Arguments, Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";
import { hintOptions, readWanted, wantedNotes } from "./wanted.ts";

const usage = "sessions delete (ID… | --user NAME | --hint HINT) [--owner NAME] [--config FILE]";

export const remove: Command = {
  summary: "Delete sessions for good.",
  usage,
  options: { ...hintOptions, ...configOption },
  maxPositionals: Number.POSITIVE_INFINITY,
  notes: [
    ...wantedNotes,
    "Deleting a turn outside of sessions deletes everything after it; what came before it stays.",
    "The rows are gone and their space is freed. Only an archive can bring them back.",
  ],
  async run(given, terminal) {
    // A missing one does not stop the others.
    const wishes = oneByOne(given).map((each) => readWanted(each, usage));
    return withStore(given, terminal, "fail", async ({ store }) => {
      let code = 0;
      for (const find of wishes) {
        try {
          for (const wanted of await find(store)) {
            const gone = await deleteWanted(store, wanted);
            const more = wanted.type === "thread" && gone > 1 ? ` and ${gone - 1} that followed it` : "";
            if (gone > 0) terminal.print(`Deleted ${wanted.id}${more}.`);
          }
        } catch (thrown) {
          if (!(thrown instanceof GatewayError) || thrown.code !== "not_found") throw thrown;
          terminal.complain(thrown.message);
          code = 1;
        }
      }
      return code;
    });
  },
};

function oneByOne(given: Arguments): readonly Arguments[] {
  if (given.positionals.length === 0) return [given];
  return given.positionals.map((id) => ({ ...given, positionals: [id] }));
}
