/** Stored sessions as text for a terminal. */
import type { Content, Item } from "../core/item.ts";
import type { SessionRecord, SessionSummary, TurnRecord } from "../core/store.ts";
import { toLine, toPlain } from "./output.ts";

/** `1 turn`, `2 turns` */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

export function toTable(sessions: readonly SessionSummary[]): string {
  const rows = sessions.map(({ id, owner, turns, createdAt, updatedAt, beginning = "" }) => {
    return [id, toLine(owner), String(turns), toTime(createdAt), toTime(updatedAt), toLine(beginning)];
  });
  const lines = [["ID", "OWNER", "TURNS", "CREATED", "LAST ACTIVITY", "FIRST WORDS"], ...rows];
  const widthOf = (column: number): number => Math.max(...lines.map((line) => line[column]?.length ?? 0));
  const padded = lines.map((line) => line.map((cell, column) => cell.padEnd(widthOf(column))).join("  "));
  return padded.map((line) => line.trimEnd()).join("\n");
}

/** Turn by turn; where a branch leaves another turn than the one above, that is said. */
export function describeSession(session: SessionRecord, turns: readonly TurnRecord[]): string {
  const { id, owner, createdAt, updatedAt, metadata, tip } = session;
  const times = `created ${toTime(createdAt)}, last activity ${toTime(updatedAt)}`;
  const lines = [
    `Session ${id} of ${toLine(owner)}: ${count(turns.length, "turn")}, ${times}`,
    ...Object.entries(metadata).map(([key, value]) => toLine(`${key}: ${value}`)),
  ];
  for (const [index, turn] of turns.entries()) {
    const above = turns[index - 1];
    if (above !== undefined && turn.parent !== above.key) {
      lines.push("", turn.parent === undefined ? "== A thread" : `== A branch, behind ${turn.parent}`);
    }
    const status = turn.told.status === "completed" ? "" : `, ${turn.told.status}`;
    const mark = turn.key === tip ? ", the session continues here" : "";
    lines.push("", `-- ${turn.key} (${toTime(turn.createdAt)}, ${toLine(turn.model)}${status}${mark})`);
    for (const item of [...turn.input, ...turn.answer]) {
      const [speaker, text] = describeItem(item);
      lines.push(`  ${speaker}: ${toPlain(text).replaceAll("\n", "\n    ")}`);
    }
  }
  return lines.join("\n");
}

/** `2026-02-03 04:05:06Z` */
function toTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

function describeItem(item: Item): readonly [speaker: string, text: string] {
  switch (item.type) {
    case "message":
      return [item.role, describeContent(item.content)];
    case "reasoning":
      return ["reasoning", [...item.summary, item.text].filter((text) => text !== "").join("\n") || "[sealed]"];
    case "tool-call":
      return ["tool call", `${item.name} ${item.arguments}`];
    case "tool-output":
      return ["tool output", describeContent(item.output)];
    default:
      return [item.type, JSON.stringify(item)];
  }
}

function describeContent(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => ("text" in part ? part.text : `[${part.type}]`)).join("\n");
}
