/** `portico sessions list`: who talked, how much and when. */
import type { SessionSummary } from "../../core/store.ts";
import { type Command, UsageError } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";
import { formatTime, toLine } from "./text.ts";
import { hintOptions, ownersNote, readHintOption } from "./wanted.ts";

const usualLimit = "50";
const maxLimit = 10_000;
/** How much of a session's first words fits on a terminal's line. */
const maxBeginning = 40;

export const list: Command = {
  summary: "List the sessions, newest activity first.",
  usage:
    "sessions list [--user NAME | --hint HINT | --outside] [--owner NAME] [--limit NUMBER] [--after ID] [--json] [--config FILE]",
  options: {
    ...hintOptions,
    outside: { summary: "Threads outside of sessions instead, each by its first turn, newest first." },
    limit: { value: "NUMBER", summary: `At most this many. Default: ${usualLimit}.` },
    after: { value: "ID", summary: "Only those that come after this one in the list." },
    json: { summary: "As a JSON array." },
    ...configOption,
  },
  notes: [
    ownersNote,
    "A session that is used moves to the beginning of the list: after such an --after, the list begins there again.",
  ],
  async run(given, terminal) {
    const { owner, after, limit: wanted = usualLimit } = given.options;
    const hint = readHintOption(given);
    const isOutside = given.flags.has("outside");
    if (isOutside && hint !== undefined) throw new UsageError("What is outside of sessions has no hint.");
    const limit = readLimit(wanted);
    const asJson = given.flags.has("json");
    const printNone = () => asJson && terminal.print("[]");
    return withStore(given, terminal, printNone, async ({ store }) => {
      const query = { owner, after, limit: limit + 1 };
      const found = await (isOutside ? store.listSessionless(query) : store.listSessions({ ...query, hint }));
      const page = found.slice(0, limit);
      if (asJson) terminal.print(JSON.stringify(page, undefined, 2));
      else if (page.length === 0) terminal.complain(describeNone(isOutside, hint !== undefined, owner));
      else terminal.print(toTable(page));
      if (found.length > limit) terminal.complain(`There are more: add --after ${page.at(-1)?.id}`);
      const isWhole = !asJson && !isOutside && hint === undefined && owner === undefined;
      if (isWhole && (await store.listSessionless({ limit: 1 })).length > 0) {
        terminal.complain("Turns are stored outside of sessions, too: add --outside");
      }
      return 0;
    });
  },
};

/** A misspelt hint or owner must not make a store look empty. */
function describeNone(isOutside: boolean, hasHint: boolean, owner: string | undefined): string {
  const whose = owner === undefined ? "" : ` of the owner '${toLine(owner)}'`;
  if (isOutside) return `Nothing${whose} is stored outside of sessions.`;
  return hasHint ? `There is no session${whose} under this hint.` : `There are no sessions${whose}.`;
}

function readLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= maxLimit) return limit;
  throw new UsageError(`The option '--limit' needs a number from 1 to ${maxLimit}, not '${text}'.`);
}

function toTable(sessions: readonly SessionSummary[]): string {
  const rows = sessions.map(({ id, owner, turns, createdAt, updatedAt, beginning = "" }) => [
    id,
    toLine(owner),
    String(turns),
    formatTime(createdAt),
    formatTime(updatedAt),
    toLine(beginning).slice(0, maxBeginning),
  ]);
  const lines = [["ID", "OWNER", "TURNS", "CREATED", "LAST ACTIVITY", "FIRST WORDS"], ...rows];
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}
