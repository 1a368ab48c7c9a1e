/** Writes items as a responses input, without ids and statuses, which belong to the answer an item came from. */
import {
  type Content,
  fieldsOf,
  type Item,
  type Message,
  type Part,
  type Role,
  type ToolCall,
  type ToolOutput,
} from "../../../core/item.ts";
import { writeAnnotation } from "../annotations.ts";
import { refusePart } from "../../failures.ts";
import { type JsonObject, objectAt, parseJson } from "../../json.ts";

export function writeItems(items: readonly Item[]): readonly unknown[] {
  return items.flatMap((item) => writeItem(item) ?? []);
}

function writeItem(item: Item): JsonObject | undefined {
  switch (item.type) {
    case "message":
      return writeMessage(item);
    case "reasoning":
      return writeReasoning(item);
    case "tool-call":
      return writeCall(item);
    case "tool-output":
      return writeOutput(item);
    case "compaction":
      if (item.encrypted !== undefined && item.summary === "") {
        return { type: "compaction", encrypted_content: item.encrypted };
      }
      return { type: "message", role: "user", content: `Summary of the conversation so far:\n${item.summary}` };
    case "other":
      return fieldsOf(item.extra, "responses");
  }
}

function writeMessage(message: Message): JsonObject {
  const { role } = message;
  return { ...extraOf(message), type: "message", role, content: writeContent(message.content, role) };
}

/** The sealed form is complete; without it, what the model showed is sent back in the open. */
function writeReasoning(item: Extract<Item, { type: "reasoning" }>): JsonObject | undefined {
  const summary = item.summary.map((text) => ({ type: "summary_text", text }));
  if (item.encrypted !== undefined) return { type: "reasoning", summary, encrypted_content: item.encrypted };
  if (item.text !== "") return { type: "reasoning", summary, content: [{ type: "reasoning_text", text: item.text }] };
  return summary.length > 0 ? { type: "reasoning", summary } : undefined;
}

function writeCall(call: ToolCall): JsonObject {
  const { callId: call_id, name, group } = call;
  const added = { ...extraOf(call), namespace: group };
  switch (call.kind) {
    case "function":
      return { ...added, type: "function_call", call_id, name, arguments: call.arguments };
    case "custom":
      return { ...added, type: "custom_tool_call", call_id, name, input: call.arguments };
    case "search":
      return { ...added, type: "tool_search_call", call_id, ...byClient, arguments: parseJson(call.arguments) ?? {} };
  }
}

/** The client ran the search. */
const byClient = { execution: "client" } as const;

function writeOutput(item: ToolOutput): JsonObject {
  const { kind, callId: call_id, output } = item;
  const type = outputTypes[kind];
  if (kind === "search") return { tools: [], ...extraOf(item), type, call_id, ...byClient };
  return { ...extraOf(item), type, call_id, output: writeContent(output, "user") };
}

const outputTypes = {
  function: "function_call_output",
  custom: "custom_tool_call_output",
  search: "tool_search_output",
} as const;

function writeContent(content: Content, role: Role): string | readonly unknown[] {
  return typeof content === "string" ? content : content.map((part) => writePart(part, role));
}

/** What the assistant said is output, even when sent back. */
function writePart(part: Part, role: Role): unknown {
  const added = fieldsOf(part.extra, "responses");
  switch (part.type) {
    case "text":
      if (role !== "assistant") return { ...added, type: "input_text", text: part.text };
      return { ...added, type: "output_text", text: part.text, annotations: part.annotations?.map(writeAnnotation) };
    case "refusal":
      // Only an assistant refuses here; tool output is text.
      if (role !== "assistant") return { ...added, type: "input_text", text: part.text };
      return { ...added, type: "refusal", refusal: part.text };
    case "image":
      return { ...added, type: "input_image", image_url: part.url, file_id: part.fileId, detail: part.detail };
    case "audio": {
      const { data, format } = part;
      return { ...added, type: "input_audio", input_audio: { ...objectAt(added ?? {}, "input_audio"), data, format } };
    }
    case "file":
      return {
        ...added,
        type: "input_file",
        file_id: part.fileId,
        file_data: part.data,
        file_url: part.url,
        filename: part.name,
      };
    case "other":
      return added ?? refusePart(part);
  }
}

function extraOf(item: Message | ToolCall | ToolOutput): JsonObject {
  return { ...fieldsOf(item.extra, "responses"), id: undefined, status: undefined };
}
