/** Reads input items; those without a type are messages, as is usual, or references. */
import type { Item, Role } from "../../core/item.ts";
import type { Earlier } from "../../core/ports.ts";
import type { Reference } from "../../core/turn.ts";
import {
  type Fields,
  invalid,
  isPresent,
  missing,
  pathOf,
  readChoice,
  readExtra,
  readObject,
  readObjects,
  readString,
  requireName,
  requireString,
} from "../fields.ts";
import { requireContent } from "./content.ts";
import { readFormat } from "./format.ts";
import { readOther } from "./other.ts";
import { readFound, readSearch } from "./search.ts";
import { type Brought, openCompaction, openReasoning, type Seal } from "./seal.ts";
import { readBroughtTools } from "./tools.ts";

/** `earlier` items have been read before. */
export function readItems(
  fields: Fields,
  key: string,
  seal: Seal,
  { length, items }: Earlier = noneEarlier,
): readonly (Item | Reference)[] | undefined {
  const found = readObjects(fields, key, length)?.map((item) => readItem(item, seal));
  return found && items.concat(found);
}

const noneEarlier: Earlier = { length: 0, items: [] };

type ReadItem = (item: Fields, seal: Seal) => Item | Reference;

const readers: Readonly<Record<string, ReadItem>> = {
  message: readMessage,
  reasoning: readReasoning,
  function_call: (item) => readCall(item, "function", "arguments"),
  function_call_output: (item) => readOutput(item, "function"),
  custom_tool_call: (item) => readCall(item, "custom", "input"),
  custom_tool_call_output: (item) => readOutput(item, "custom"),
  tool_search_call: readSearch,
  tool_search_output: readFound,
  agent_message: readAgentMessage,
  additional_tools: (item) => ({ ...readOther(item.values), tools: readBroughtTools(item), steers: true }),
  configuration_update: readUpdate,
  compaction: (item, seal) => openCompaction(toBrought(item, requireName(item, "encrypted_content")), seal),
  compaction_trigger: (item) => misplacedTrigger(pathOf(item, "type")),
  item_reference: (item) => ({ type: "reference", id: requireName(item, "id") }),
};

/** Items that only this dialect knows, such as hosted tool calls, are kept for an adapter that speaks it. */
function readItem(item: Fields, seal: Seal): Item | Reference {
  const type = readString(item, "type") ?? (isBareReference(item) ? "item_reference" : "message");
  readString(item, "id");
  readString(item, "status");
  const known = Object.hasOwn(readers, type) ? readers[type] : undefined;
  if (known !== undefined) return known(item, seal);
  requireName(item, "type");
  return readOther(item.values);
}

/** In its proper place, the request removes it before reading items. */
function misplacedTrigger(param: string): never {
  invalid(param, "Invalid value: 'compaction_trigger'. It must be the last item of a response's input.");
}

/** A reference may lack its type: it has an id, and nothing that a message has. */
function isBareReference(item: Fields): boolean {
  return typeof item.values["id"] === "string" && !isPresent(item, "role") && !isPresent(item, "content");
}

const roles: readonly Role[] = ["user", "assistant", "system", "developer"];

function readMessage(item: Fields): Item {
  readString(item, "phase");
  return {
    type: "message",
    role: readChoice(item, "role", roles) ?? missing(pathOf(item, "role")),
    content: requireContent(item, "content"),
    extra: readExtra(item, knownOfMessage, "responses"),
  };
}

function readCall(item: Fields, kind: "function" | "custom", written: "arguments" | "input"): Item {
  const namespace = readString(item, "namespace") || undefined;
  return {
    type: "tool-call",
    kind,
    callId: requireName(item, "call_id"),
    name: requireName(item, "name"),
    ...(namespace !== undefined && { group: namespace }),
    arguments: requireString(item, written),
    extra: readExtra(item, knownOfCall[kind], "responses"),
  };
}

function readOutput(item: Fields, kind: "function" | "custom"): Item {
  return {
    type: "tool-output",
    kind,
    callId: requireName(item, "call_id"),
    output: requireContent(item, "output"),
    extra: readExtra(item, knownOfOutput, "responses"),
  };
}

function readReasoning(item: Fields, seal: Seal): Item {
  const open = { text: readTexts(item, "content").join(""), summary: readTexts(item, "summary") };
  const sealed = readString(item, "encrypted_content");
  return openReasoning(sealed === undefined ? undefined : toBrought(item, sealed), open, seal);
}

/**
 * A message between agents of one program. A part that should be sealed is plain text if one of our models wrote it.
 */
function readAgentMessage(item: Fields): Item {
  const words = (readObjects(item, "content") ?? []).flatMap(
    (part) => readString(part, "text") ?? readString(part, "encrypted_content") ?? [],
  );
  return { ...readOther(item.values), ...(words.length > 0 && { words: words.join("\n") }) };
}

/** Changes settings from here on; like them, it is not part of the conversation. */
function readUpdate(item: Fields): Item {
  const reasoning = readObject(item, "reasoning");
  const text = readObject(item, "text");
  const reasoningEffort = reasoning && readString(reasoning, "effort");
  const format = text && readFormat(text);
  return {
    ...readOther(item.values),
    updates: { ...(reasoningEffort !== undefined && { reasoningEffort }), ...(format !== undefined && { format }) },
    steers: true,
  };
}

function toBrought(item: Fields, sealed: string): Brought {
  return { sealed, path: pathOf(item, "encrypted_content") };
}

function readTexts(item: Fields, key: string): readonly string[] {
  return (readObjects(item, key) ?? []).map((part) => requireString(part, "text"));
}

/** Ids and statuses are left out: they belong to the answer the item came from, and mean nothing to another adapter. */
const leftOut = ["type", "id", "status"];
const knownOfMessage = new Set([...leftOut, "role", "content"]);
const knownOfOutput = new Set([...leftOut, "call_id", "output"]);
const knownOfCall = {
  // The official client adds `parsed_arguments` to the calls of an answer: nobody needs them.
  function: new Set([...leftOut, "call_id", "name", "namespace", "arguments", "parsed_arguments"]),
  custom: new Set([...leftOut, "call_id", "name", "namespace", "input"]),
} as const;
