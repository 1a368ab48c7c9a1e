/** `portico sessions show`: a conversation to read, with all of its threads and branches. */
import type { ArchiveRecord, SessionStore, StoredTurn } from "../../core/store.ts";
import type { Command } from "../command.ts";
import { configOption } from "../settings.ts";
import { withStore } from "./open.ts";
import { describeItem, formatTime, toPlain } from "./text.ts";

export const show: Command = {
  summary: "Show what was said in a session, with its branches.",
  usage: "sessions show ID [--json] [--config FILE]",
  options: { json: { summary: "As a JSON object." }, ...configOption },
  minPositionals: 1,
  maxPositionals: 1,
  notes: ["ID is one of `portico sessions list`; answers have it in the header x-portico-session."],
  async run(given, terminal, house) {
    const [id = ""] = given.positionals;
    return withStore(given, terminal, house, async ({ store }) => {
      const { session, turns } = await readWhole(store, id);
      if (!given.flags.has("json")) terminal.print(describeSession(session, turns));
      else {
        const { type: _type, hint: _hint, ...shown } = session;
        terminal.print(JSON.stringify({ ...shown, turns }, undefined, 2));
      }
      return 0;
    });
  },
};

type SessionRecord = Extract<ArchiveRecord, { type: "session" }>;

interface Whole {
  readonly session: SessionRecord;
  readonly turns: readonly StoredTurn[];
}

async function readWhole(store: SessionStore, id: string): Promise<Whole> {
  let session: SessionRecord | undefined;
  const turns: StoredTurn[] = [];
  for await (const record of store.exportRecords(id)) {
    if (record.type === "session") session = record;
    if (record.type === "turn") turns.push(record.turn);
  }
  if (session === undefined) throw new Error(`the store told of ${id} without its session`);
  return { session, turns };
}

/** Threads one after the other, each from its root; a branch comes when the thread before it is told to its end. */
function describeSession(session: SessionRecord, turns: readonly StoredTurn[]): string {
  const { id, owner, createdAt, updatedAt, metadata, tip } = session;
  const known = new Set(turns.map((turn) => turn.id));
  const roots = turns.filter(({ parent }) => parent === undefined || !known.has(parent));
  const childrenOf = Map.groupBy(turns, ({ parent }) => parent);
  const lines = [
    `Session ${id} of ${toPlain(owner)}`,
    `created ${formatTime(createdAt)}, last activity ${formatTime(updatedAt)}, ${count(turns.length, "turn")}, ${count(roots.length, "thread")}`,
    ...Object.entries(metadata).map(([key, value]) => toPlain(`${key}: ${value}`)),
  ];
  let before: StoredTurn | undefined;
  // A list in place of recursion: a thread may be thousands of turns long.
  const waiting = roots.toReversed();
  for (let turn = waiting.pop(); turn !== undefined; turn = waiting.pop()) {
    if (turn.parent === undefined || !known.has(turn.parent))
      lines.push(...(roots.length > 1 ? ["", "== A thread"] : []));
    else if (turn.parent !== before?.id) lines.push("", `== A branch, from ${turn.parent}`);
    const children = childrenOf.get(turn.id) ?? [];
    lines.push("", ...describeTurn(turn, turn.id === tip, children.length));
    waiting.push(...children.toReversed());
    before = turn;
  }
  return lines.join("\n");
}

function describeTurn(turn: StoredTurn, isTip: boolean, branches: number): readonly string[] {
  const remarks = [
    ...(turn.status === "completed" ? [] : [turn.status]),
    ...(turn.gap === true ? ["something before it or in it was deleted"] : []),
    ...(branches > 1 ? [`${branches} branches follow`] : []),
    ...(isTip ? ["the session goes on from here"] : []),
  ];
  const about = [formatTime(turn.createdAt), toPlain(turn.model), ...remarks].join(", ");
  const said = [...turn.input, ...turn.output].map((item) => {
    const [speaker, text] = describeItem(item);
    return `  ${speaker}: ${toPlain(text).replaceAll("\n", "\n    ")}`;
  });
  return [`-- ${turn.id} (${about})`, ...said];
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
