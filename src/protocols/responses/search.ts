/** Tool searches: the caller's are a call and an output like any other; those of a server are its own items. */
import { describeFound } from "../../core/found.ts";
import type { Extra, Item, ToolCall, ToolOutput } from "../../core/item.ts";
import { isExcessive } from "../../core/json-shape.ts";
import { type Fields, parseObject, readString } from "../fields.ts";
import { readOther } from "./other.ts";
import { readBroughtTools, searchName } from "./tools.ts";

export function readSearch(item: Fields): Item {
  const callId = callersId(item);
  if (callId === undefined) return readOther(item.values);
  const written = item.values["arguments"] ?? {};
  return {
    type: "tool-call",
    kind: "search",
    callId,
    name: searchName,
    arguments: typeof written === "string" ? written : JSON.stringify(written),
  };
}

/** What was found is available from here on, whoever searched. */
export function readFound(item: Fields): Item {
  const callId = callersId(item);
  const tools = readBroughtTools(item);
  if (callId === undefined) return { ...readOther(item.values), tools };
  const extra: Extra = { dialect: "responses", fields: { tools: item.values["tools"] ?? [] } };
  return { type: "tool-output", kind: "search", callId, output: describeFound(tools), tools, extra };
}

export function toWireSearch({ callId, arguments: written }: ToolCall): object {
  return { type: "tool_search_call", call_id: callId, execution: "client", arguments: toArguments(written) };
}

export function toWireFound({ callId, extra }: ToolOutput): object {
  return { ...extra?.fields, type: "tool_search_output", call_id: callId, execution: "client" };
}

/** The call id, unless a server searches. */
function callersId(item: Fields): string | undefined {
  return readString(item, "execution") === "server" ? undefined : readString(item, "call_id") || undefined;
}

/** An object, as on the wire; anything else stays as the model or the caller wrote it. */
function toArguments(written: string): unknown {
  if (written === "") return {};
  // No limit on a body's JSON has seen what is in its strings.
  return isExcessive(written) ? written : (parseObject(written) ?? written);
}
