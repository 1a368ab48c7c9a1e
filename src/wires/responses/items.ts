/** Items, both ways: as callers and servers write them, as response objects and lists show them, and as a server gets them. */
import type { Tell } from "../../core/adapter.ts";
import type { Item, Message, OtherItem, Reasoning, Role, ToolCall, ToolOutput } from "../../core/item.ts";
import { type Extra, fieldsOf } from "../../core/settings.ts";
import {
  type Fields,
  isPresent,
  missing,
  parseObject,
  pathOf,
  readChoice,
  readExtra,
  readObjects,
  readString,
  requireName,
  requireString,
} from "../fields.ts";
import { inJson } from "../again.ts";
import type { Seal } from "../wire.ts";
import { requireContent, writeContent } from "./content.ts";
import { openItem, sealItem, toItsSource } from "./seal.ts";
import { readTools, searchName } from "./tools.ts";

/** Undefined: there is no such list. */
export function readItems(fields: Fields, key: string, seal: Seal): readonly Item[] | undefined {
  return readObjects(fields, key)?.map((item) => readItem(item, seal));
}

/** Those without a type are messages, as is usual, or references; what only this dialect knows is kept as it is. */
export function readItem(item: Fields, seal: Seal): Item {
  const type = readString(item, "type") ?? (isBareReference(item) ? "item_reference" : "message");
  for (const key of ["id", "status"]) readString(item, key);
  const read = readers.get(type);
  return read === undefined ? readOther(item.values) : read(item, seal);
}

/** It has an id, and nothing that a message has. */
function isBareReference(item: Fields): boolean {
  return typeof item.values["id"] === "string" && !isPresent(item, "role") && !isPresent(item, "content");
}

const readers = new Map<string, (item: Fields, seal: Seal) => Item>([
  ["message", readMessage],
  ["reasoning", readReasoning],
  ["function_call", (item) => readCall(item, "function", "arguments")],
  ["function_call_output", (item) => readOutput(item, "function")],
  ["custom_tool_call", (item) => readCall(item, "custom", "input")],
  ["custom_tool_call_output", (item) => readOutput(item, "custom")],
  ["tool_search_call", readSearch],
  ["tool_search_output", readFound],
  ["additional_tools", (item) => ({ ...readOther(item.values), tools: readTools(item) })],
  ["compaction", readCompaction],
  ["item_reference", (item) => ({ type: "reference", id: toKeptId(requireName(item, "id")) })],
]);

const roles: readonly Role[] = ["user", "assistant", "system", "developer"];

function readMessage(item: Fields): Item {
  const role = readChoice(item, "role", roles) ?? missing(pathOf(item, "role"));
  readString(item, "phase");
  const extra = readExtra(item, knownOfItem, "responses");
  return { type: "message", role, content: requireContent(item, "content"), extra };
}

/** What was sealed here says all; what was sealed elsewhere is for whoever can read it. */
function readReasoning(item: Fields, seal: Seal): Item {
  const [text, summary] = [readTexts(item, "content").join(""), readTexts(item, "summary")];
  const encrypted = readString(item, "encrypted_content");
  return openItem(item, seal) ?? { type: "reasoning", summary, text, encrypted };
}

function readTexts(item: Fields, key: string): readonly string[] {
  return (readObjects(item, key) ?? []).map((part) => requireString(part, "text"));
}

function readCompaction(item: Fields, seal: Seal): Item {
  const encrypted = requireName(item, "encrypted_content");
  return openItem(item, seal) ?? { type: "compaction", summary: "", encrypted };
}

function readCall(item: Fields, kind: "function" | "custom", written: "arguments" | "input"): ToolCall {
  return {
    type: "tool-call",
    kind,
    callId: requireName(item, "call_id"),
    name: requireName(item, "name"),
    group: readString(item, "namespace") || undefined,
    arguments: requireString(item, written),
    extra: readExtra(item, knownOfItem, "responses"),
  };
}

function readOutput(item: Fields, kind: "function" | "custom"): ToolOutput {
  const callId = requireName(item, "call_id");
  const extra = readExtra(item, knownOfItem, "responses");
  return { type: "tool-output", kind, callId, output: requireContent(item, "output"), extra };
}

/** The caller's searches are calls like any other; those of a server are its own items. */
function readSearch(item: Fields): Item {
  const callId = callersId(item);
  if (callId === undefined) return readOther(item.values);
  const { arguments: written = {} } = item.values;
  const text = typeof written === "string" ? written : JSON.stringify(written);
  return { type: "tool-call", kind: "search", callId, name: searchName, arguments: text };
}

/** What was found is offered from here on, whoever searched. */
function readFound(item: Fields): Item {
  const callId = callersId(item);
  const tools = readTools(item);
  if (callId === undefined) return { ...readOther(item.values), tools };
  const output = JSON.stringify(tools.map((tool) => tool.name ?? tool.type));
  const extra = { dialect: "responses", fields: { tools: item.values["tools"] ?? [] } } as const;
  return { type: "tool-output", kind: "search", callId, output, tools, extra };
}

/** The call id, unless a server searches. */
function callersId(item: Fields): string | undefined {
  return readString(item, "execution") === "server" ? undefined : readString(item, "call_id") || undefined;
}

/**
 * Ids and statuses are left out: they belong to the answer that the item came from, and mean nothing to another server.
 * The official client adds `parsed_arguments` to the calls of an answer: nobody needs them.
 */
export const knownOfItem = new Set(
  "type id status role content call_id output name namespace arguments input parsed_arguments".split(" "),
);

/** What only this dialect knows is kept as its maker wrote it, and shown to callers under another id. */
export function readOther(values: Extra["fields"]): OtherItem {
  const fields = { ...values };
  for (const key of ["id", "approval_request_id"]) {
    const shown = fields[key];
    if (typeof shown === "string") fields[key] = shown.replace(keptId, "") || undefined;
  }
  return { type: "other", extra: { dialect: "responses", fields }, exchange: exchangeOf(fields) };
}

/** The id that its maker gave it, which others may name, and behind it the one under which it is kept. */
export function shownIdOf(item: Item): string {
  const { id = "" } = item;
  const own = item.type === "other" ? item.extra.fields["id"] : undefined;
  return typeof own === "string" && own !== "" ? `${own}_${id}` : id;
}

/** The id under which an item is kept that is shown under this one. */
export function toKeptId(shown: string): string {
  return keptId.exec(shown)?.[1] ?? shown;
}

/** It ends with the key of a turn and a place in it. */
const keptId = /_?(item_[0-9a-f]{20,64}_i?\d+)$/;

/** A call and its output share an id, whatever the tool; an approval names its request by the request's id. */
function exchangeOf({ type, id, call_id, approval_request_id }: Extra["fields"]): OtherItem["exchange"] {
  if (type === "mcp_approval_request") return toExchange("model", id);
  if (type === "mcp_approval_response") return toExchange("tools", approval_request_id);
  return toExchange(String(type).endsWith("_output") ? "tools" : "model", call_id);
}

function toExchange(side: "model" | "tools", id: unknown): OtherItem["exchange"] {
  return typeof id === "string" && id !== "" ? { side, id } : undefined;
}

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** As a caller sees it, as JSON. `showsSeals`: also the sealed form of reasoning; a compaction has no other. */
export function writeItem(item: Item, seal: Seal, showsSeals = false, status: ItemStatus = "completed"): string {
  return JSON.stringify(toShown(item, status, seal, showsSeals));
}

function toShown(item: Item, status: ItemStatus, seal: Seal, showsSeals: boolean): object {
  const { id } = item;
  switch (item.type) {
    case "message":
    case "tool-call":
    case "tool-output":
      return { ...toWire(item, false), id, status };
    case "reasoning": {
      const sealed = showsSeals && status !== "in_progress" ? sealItem(item, seal) : undefined;
      return { ...toOpen(item), id, status, encrypted_content: sealed };
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

/** For a server, without ids and statuses; what cannot be said in this dialect is left out. `source`: its address. */
export function sendItem(item: Item, source: string, tell: Tell): object | undefined {
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
    // A text is sent as most callers write it.
    const written = isSent && typeof content === "string" ? inJson(content) : writeContent(content, role, isSent);
    return { ...added, type: "message", content: written, role };
  }
  const { kind, callId: call_id } = item;
  const type = kind === "custom" ? "custom_tool_call" : kind === "search" ? "tool_search_call" : "function_call";
  if (item.type === "tool-call") {
    const { name, group: namespace, arguments: written } = item;
    if (kind === "search") return { type, call_id, ...byClient, arguments: parseObject(written) ?? written };
    return { ...added, type, [kind === "custom" ? "input" : "arguments"]: written, call_id, name, namespace };
  }
  if (kind === "search") return { tools: [], ...added, type: "tool_search_output", call_id, ...byClient };
  const { output: said } = item;
  const output = typeof said !== "string" ? writeContent(said, "user", isSent) : isSent ? inJson(said) : said;
  return { ...added, type: `${type}_output`, call_id, output };
}

/** The caller runs the search. */
const byClient = { execution: "client" };

/** What anybody may read of it. */
function toOpen({ summary, text }: Pick<Reasoning, "summary" | "text">): object {
  const content = text === "" ? undefined : [{ type: "reasoning_text", text }];
  return { type: "reasoning", content, summary: summary.map((section) => ({ type: "summary_text", text: section })) };
}
