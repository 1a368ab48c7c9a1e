/** Reads input items; one without a type is a message, the way most clients write it. */
import type { Extra, Item, Role } from "../../core/item.ts";
import {
  type Fields,
  missing,
  notAllowed,
  pathOf,
  readChoice,
  readObjects,
  readString,
  requireName,
  requireString,
  wrongType,
} from "../fields.ts";
import { readContent } from "./content.ts";

export function readItems(fields: Fields, key: string): readonly Item[] {
  const value = fields.values[key];
  if (!Array.isArray(value)) throw wrongType(pathOf(fields, key), "a string or an array", value);
  return (readObjects(fields, key) ?? []).map(readItem);
}

type ReadItem = (item: Fields) => Item;

const readers: Readonly<Record<string, ReadItem>> = {
  message: readMessage,
  reasoning: readReasoning,
  function_call: (item) => readCall(item, "function", "arguments"),
  function_call_output: (item) => readOutput(item, "function"),
  custom_tool_call: (item) => readCall(item, "custom", "input"),
  custom_tool_call_output: (item) => readOutput(item, "custom"),
};

function readItem(item: Fields): Item {
  const type = readString(item, "type") ?? "message";
  const known = Object.hasOwn(readers, type) ? readers[type] : undefined;
  return known === undefined ? notAllowed(pathOf(item, "type"), type, Object.keys(readers)) : known(item);
}

const roles: readonly Role[] = ["user", "assistant", "system", "developer"];

function readMessage(item: Fields): Item {
  return {
    type: "message",
    role: readChoice(item, "role", roles) ?? missing(pathOf(item, "role")),
    content: readContent(item, "content"),
    extra: readExtra(item, "role", "content"),
  };
}

function readCall(item: Fields, kind: "function" | "custom", written: "arguments" | "input"): Item {
  return {
    type: "tool-call",
    kind,
    callId: requireName(item, "call_id"),
    name: requireName(item, "name"),
    arguments: requireString(item, written),
    extra: readExtra(item, "call_id", "name", written),
  };
}

function readOutput(item: Fields, kind: "function" | "custom"): Item {
  return { type: "tool-output", kind, callId: requireName(item, "call_id"), output: readContent(item, "output") };
}

function readReasoning(item: Fields): Item {
  return {
    type: "reasoning",
    summary: readTexts(item, "summary"),
    text: readTexts(item, "content").join(""),
    encrypted: readString(item, "encrypted_content"),
  };
}

function readTexts(item: Fields, key: string): readonly string[] {
  return (readObjects(item, key) ?? []).map((part) => requireString(part, "text"));
}

/** Ids and states are left out: they are of the answer that the item came from, and mean nothing to another adapter. */
function readExtra(item: Fields, ...known: readonly string[]): Extra | undefined {
  const rest = Object.entries(item.values).filter(
    ([key, value]) => value !== null && !["type", "id", "status", ...known].includes(key),
  );
  return rest.length === 0 ? undefined : { dialect: "responses", fields: Object.fromEntries(rest) };
}
