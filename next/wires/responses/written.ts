/** Writes items: for callers as response objects and lists show them, for a server without ids and statuses. */
import type { Tell } from "../../core/adapter.ts";
import { fieldsOf, type Item, type Message, type Reasoning, type ToolCall, type ToolOutput } from "../../core/item.ts";
import { parseObject } from "../fields.ts";
import type { Seal } from "../wire.ts";
import { writeContent } from "./content.ts";
import { shownIdOf } from "./hosted.ts";
import { sealCompaction, sealReasoning, toItsSource } from "./seal.ts";

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
      const shown = sections === undefined ? item : { summary: sections, text: "" };
      const sealed = showsSeals && status !== "in_progress" ? sealReasoning(item, seal) : undefined;
      return { id, status, ...writeReasoning(shown), encrypted_content: sealed };
    }
    case "compaction":
      return { id, type: "compaction", encrypted_content: sealCompaction(item, seal) };
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
      const encrypted_content = item.encrypted === undefined ? undefined : toItsSource(item.encrypted, source);
      // The sealed form is complete; without it, what the model showed goes back in the open.
      if (encrypted_content !== undefined) return { ...writeReasoning({ ...item, text: "" }), encrypted_content };
      return item.text === "" && item.summary.length === 0 ? undefined : writeReasoning(item);
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

function toWire(item: Message | ToolCall | ToolOutput, isSent: boolean): object {
  const added = fieldsOf(item.extra, "responses");
  if (item.type === "tool-call") return { ...added, ...writeCall(item) };
  if (item.type === "message") {
    const content = writeContent(item.content, item.role, isSent);
    return { ...added, type: "message", content, role: item.role };
  }
  const { kind, callId: call_id, output } = item;
  if (kind === "search") return { tools: [], ...added, type: "tool_search_output", call_id, execution: "client" };
  const type = kind === "custom" ? "custom_tool_call_output" : "function_call_output";
  return {
    ...added,
    type,
    call_id,
    output: typeof output === "string" ? output : writeContent(output, "user", isSent),
  };
}

function writeCall({ kind, callId: call_id, name, group: namespace, arguments: written }: ToolCall): object {
  switch (kind) {
    case "function":
      return { type: "function_call", arguments: written, call_id, name, namespace };
    case "custom":
      return { type: "custom_tool_call", call_id, input: written, name, namespace };
    case "search": {
      // An object, as on the wire; anything else stays as it was written.
      const query = written === "" ? {} : (parseObject(written) ?? written);
      return { type: "tool_search_call", call_id, execution: "client", arguments: query };
    }
  }
}

function writeReasoning({ summary, text }: Pick<Reasoning, "summary" | "text">): object {
  const content = text === "" ? undefined : [writeThought(text)];
  return { type: "reasoning", content, summary: summary.map(writeSection) };
}

export function writeThought(text: string): object {
  return { type: "reasoning_text", text };
}

export function writeSection(text: string): object {
  return { type: "summary_text", text };
}
