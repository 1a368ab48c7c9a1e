/** `portico sessions show`: a conversation to read, with all of its threads and branches. */
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../core/store.ts";
import type { Wanted } from "../../core/wanted.ts";
import type { Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";
import { count, describeItem, formatTime, toLine, toPlain } from "./text.ts";
import { hintOptions, readWanted, wantedNotes } from "./wanted.ts";

const usage = "sessions show (ID | --user NAME | --hint HINT) [--owner NAME] [--json] [--config FILE]";

export const show: Command = {
  summary: "Show what was said in a session, with its branches.",
  usage,
  options: {
    ...hintOptions,
    json: { summary: "As a JSON object; with a hint, as an array of them." },
    ...configOption,
  },
  maxPositionals: 1,
  notes: [...wantedNotes, "For a turn outside of sessions, shows what came before it and everything after it."],
  async run(given, terminal) {
    const find = readWanted(given, usage);
    return withStore(given, terminal, "fail", async ({ store }) => {
      const found: Whole[] = [];
      for (const wanted of await find(store)) found.push(await readWhole(store, wanted));
      if (!given.flags.has("json")) terminal.print(found.map(describeWhole).join("\n\n"));
      else {
        const shown = found.map(toShown);
        terminal.print(JSON.stringify(given.positionals.length > 0 ? shown[0] : shown, undefined, 2));
      }
      return 0;
    });
  },
};

type SessionRecord = Extract<ArchiveRecord, { type: "session" }>;

interface Whole {
  readonly wanted: Wanted;
  /** Undefined for what is in no session. */
  readonly session: SessionRecord | undefined;
  readonly turns: readonly StoredTurn[];
}

async function readWhole(store: SessionStore, wanted: Wanted): Promise<Whole> {
  let session: SessionRecord | undefined;
  const turns: StoredTurn[] = [];
  for await (const record of store.exportRecords(wanted.id)) {
    if (record.type === "session") session = record;
    if (record.type === "turn") turns.push(record.turn);
  }
  return { wanted, session, turns };
}

function toShown({ wanted: { id, owner }, session, turns }: Whole): object {
  if (session === undefined) return { id, owner, turns };
  const { type: _type, hint: _hint, ...shown } = session;
  return { ...shown, turns };
}

/** Threads one after the other, each from its root; a branch follows the end of the thread before it. */
function describeWhole({ wanted, session, turns }: Whole): string {
  const known = new Set(turns.map((turn) => turn.id));
  const roots = turns.filter(({ parent }) => parent === undefined || !known.has(parent));
  const childrenOf = Map.groupBy(turns, ({ parent }) => parent);
  const tips = turns.filter((turn) => !childrenOf.has(turn.id));
  const counts = `${count(turns.length, "turn")}, ${count(tips.length, "thread")}`;
  const lines = session === undefined ? describeThread(wanted, counts) : describeSession(session, counts);
  let before: StoredTurn | undefined;
  // A list instead of recursion: a thread may be thousands of turns long.
  const waiting = roots.toReversed();
  for (let turn = waiting.pop(); turn !== undefined; turn = waiting.pop()) {
    if (turn.parent === undefined || !known.has(turn.parent))
      lines.push(...(roots.length > 1 ? ["", "== A thread"] : []));
    else if (turn.parent !== before?.id) lines.push("", `== A branch, from ${turn.parent}`);
    const children = childrenOf.get(turn.id) ?? [];
    lines.push("", ...describeTurn(turn, turn.id === session?.tip, children.length));
    waiting.push(...children.toReversed());
    before = turn;
  }
  return lines.join("\n");
}

function describeSession({ id, owner, createdAt, updatedAt, metadata }: SessionRecord, counts: string): string[] {
  return [
    `Session ${id} of ${toLine(owner)}`,
    `created ${formatTime(createdAt)}, last activity ${formatTime(updatedAt)}, ${counts}`,
    ...Object.entries(metadata).map(([key, value]) => toLine(`${key}: ${value}`)),
  ];
}

function describeThread({ id, owner }: Wanted, counts: string): string[] {
  return [
    `${id} of ${toLine(owner)}, outside of sessions`,
    `with what came before it and everything after it: ${counts}`,
  ];
}

function describeTurn(turn: StoredTurn, isTip: boolean, branches: number): readonly string[] {
  const remarks = [
    ...(turn.status === "completed" ? [] : [turn.status]),
    ...(turn.gap === true ? ["something before it or in it was deleted"] : []),
    ...(branches > 1 ? [`${branches} branches follow`] : []),
    ...(isTip ? ["the session continues from here"] : []),
  ];
  const about = [formatTime(turn.createdAt), toLine(turn.model), ...remarks].join(", ");
  const said = [...turn.input, ...turn.output].map((item) => {
    const [speaker, text] = describeItem(item);
    return `  ${speaker}: ${toPlain(text).replaceAll("\n", "\n    ")}`;
  });
  return [`-- ${turn.id} (${about})`, ...said];
}
