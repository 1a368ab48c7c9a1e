/** Writes items: for callers as response objects and lists show them, for a server without ids and statuses. */
import type { Tell } from "../../core/adapter.ts";
import { type Item, type Message, type Reasoning, type ToolCall, type ToolOutput } from "../../core/item.ts";
import { fieldsOf } from "../../core/settings.ts";
import { parseObject } from "../fields.ts";
import type { Seal } from "../wire.ts";
import { writeContent } from "./content.ts";
import { shownIdOf } from "./items.ts";
import { sealItem, toItsSource } from "./seal.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** Which sealed forms a caller sees. */
export interface Sealing {
  readonly seal: Seal;
  /** Also those of reasoning; a compaction has no other form. */
  readonly showsSeals: boolean;
}

/** An item that is kept, as JSON. */
export function writeItem(item: Item, seal: Seal, showsSeals = false): string {
  return showItem(item, "completed", { seal, showsSeals });
}

/** `sections`: what is shown of reasoning instead of its text and summary. */
export function showItem(item: Item, status: ItemStatus, sealing: Sealing, sections?: readonly string[]): string {
  return JSON.stringify(toShown(item, status, sealing, sections));
}

function toShown(item: Item, status: ItemStatus, { seal, showsSeals }: Sealing, sections?: readonly string[]): object {
  const { id } = item;
  switch (item.type) {
    case "message":
    case "tool-call":
    case "tool-output":
      return { ...toWire(item, false), id, status };
    case "reasoning": {
      const shown = sections === undefined ? toOpen(item) : toOpen({ summary: sections, text: "" });
      const isSealed = showsSeals && status !== "in_progress";
      return { ...shown, id, status, encrypted_content: isSealed ? sealItem(item, seal) : undefined };
    }
    case "compaction": {
      // What only its maker can read stays as it came.
      const { summary, encrypted } = item;
      return { id, type: "compaction", encrypted_content: summary === "" ? encrypted : sealItem(item, seal) };
    }
    case "other": {
      // It comes whole, but is shown as in progress first.
      const fields = fieldsOf(item.extra, "responses") ?? {};
      const begins = status === "in_progress" && "status" in fields;
      return { ...fields, id: shownIdOf(item), ...(begins && { status }) };
    }
    case "reference":
      return { id, type: "item_reference" };
  }
}

/** For a server, as JSON; what cannot be said in this dialect is left out. `source`: its address. */
export function sendItem(item: Item, source: string, tell: Tell): string | undefined {
  if (item.type === "message" && item.extra === undefined && typeof item.content === "string")
    return `{"type":"message","role":"${item.role}","content":${JSON.stringify(item.content)}}`;
  const sent = toSent(item, source, tell);
  return sent && JSON.stringify(sent);
}

function toSent(item: Item, source: string, tell: Tell): object | undefined {
  switch (item.type) {
    case "message":
    case "tool-call":
    case "tool-output":
      return toWire(item, true);
    case "reasoning": {
      const { summary, text, encrypted } = item;
      const encrypted_content = encrypted === undefined ? undefined : toItsSource(encrypted, source);
      // The sealed form is complete; without it, what the model showed goes back in the open.
      if (encrypted_content !== undefined) return { ...toOpen({ summary, text: "" }), encrypted_content };
      return text === "" && summary.length === 0 ? undefined : toOpen(item);
    }
    case "compaction":
      if (item.summary === "") return { type: "compaction", encrypted_content: item.encrypted };
      return { type: "message", role: "user", content: `Summary of the conversation so far:\n${item.summary}` };
    case "other":
      if (item.extra.dialect === "responses") return item.extra.fields;
      tell({ type: "left-out", what: `item ${String(item.extra.fields["type"])}` });
      return undefined;
    case "reference":
      return undefined;
  }
}

/** What callers and servers get alike. */
function toWire(item: Message | ToolCall | ToolOutput, isSent: boolean): object {
  const added = fieldsOf(item.extra, "responses");
  if (item.type === "message") {
    const { role, content } = item;
    return { ...added, type: "message", content: writeContent(content, role, isSent), role };
  }
  const { kind, callId: call_id } = item;
  const of = kind === "custom" ? "custom_tool_call" : kind === "search" ? "tool_search_call" : "function_call";
  if (item.type === "tool-call") {
    const { name, group: namespace, arguments: written } = item;
    if (kind === "search") return { type: of, call_id, ...byClient, arguments: parseObject(written) ?? written };
    return { ...added, type: of, [kind === "custom" ? "input" : "arguments"]: written, call_id, name, namespace };
  }
  if (kind === "search") return { tools: [], ...added, type: "tool_search_output", call_id, ...byClient };
  const output = typeof item.output === "string" ? item.output : writeContent(item.output, "user", isSent);
  return { ...added, type: `${of}_output`, call_id, output };
}

/** The caller runs the search. */
const byClient = { execution: "client" };

/** What anybody may read of it. */
function toOpen({ summary, text }: Pick<Reasoning, "summary" | "text">): object {
  const content = text === "" ? undefined : [writeThought(text)];
  return { type: "reasoning", content, summary: summary.map(writeSection) };
}

export function writeThought(text: string): object {
  return { type: "reasoning_text", text };
}

export function writeSection(text: string): object {
  return { type: "summary_text", text };
}
