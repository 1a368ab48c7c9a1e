/** Tools and the choice among them, read from a request's fields and written as such. */
import { fieldsOf, type Settings, type Tool, type ToolChoice } from "../../core/settings.ts";
import { kindOfChosen, readToolChoice } from "../choice.ts";
import { readCustomTool, readFunction } from "../common.ts";
import { toFunction } from "../custom-tools.ts";
import {
  type Fields,
  isObject,
  readChoice,
  readObjects,
  requireName,
  requireObject,
  requireString,
  type Said,
  toFields,
} from "../fields.ts";
import type { Habits } from "../wire.ts";

/** The caller uses `functions` and `function_call`, the form before tools, and gets its call in the same form. */
export function usesFunctions({ values: { functions } }: Fields): boolean {
  return Array.isArray(functions) && functions.length > 0;
}

export function readTools(body: Fields): Pick<Settings, "tools" | "toolChoice" | "allowedTools"> {
  const tools = (readObjects(body, "tools") ?? []).map(readTool);
  const functions = readObjects(body, "functions") ?? [];
  if (functions.length === 0) return { tools, ...readToolChoice(body, tools, "chat") };
  return { tools: [...tools, ...functions.map(readFunction)], toolChoice: readFunctionCall(body) };
}

function readTool(tool: Fields): Tool {
  const type = requireString(tool, "type");
  if (type === "function") return readFunction(requireObject(tool, "function"));
  if (type === "custom") return readCustomTool(requireObject(tool, "custom"));
  return { type: "other", extra: { dialect: "chat", fields: tool.values } };
}

function readFunctionCall(body: Fields): ToolChoice | undefined {
  const { function_call: call } = body.values;
  if (isObject(call)) return { type: "tool", name: requireName(toFields(call, "function_call"), "name") };
  const type = readChoice(body, "function_call", ["auto", "none"]);
  return type && { type };
}

/** Servers refuse a choice and `parallel_tool_calls` without tools. */
export function writeTools(settings: Settings, { hasCustomTools }: Habits): Said {
  const adapt = (tool: Tool): Tool => (tool.type === "custom" && !hasCustomTools ? toFunction(tool) : tool);
  const offered = settings.tools.map(adapt);
  const tools = offered.flatMap((tool) => writeTool(tool) ?? []);
  if (tools.length === 0) return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined };
  const tool_choice = writeChoice(settings.toolChoice, offered);
  return { tools, tool_choice, parallel_tool_calls: settings.parallelToolCalls };
}

function writeTool(tool: Tool): Said | undefined {
  if (tool.type === "other") return fieldsOf(tool.extra, "chat");
  const { type, name, description } = tool;
  if (type === "function")
    return { type, function: { name, description, parameters: tool.parameters, strict: tool.strict } };
  const { type: kind, ...grammar } = isObject(tool.format) ? tool.format : {};
  return { type, custom: { name, description, format: kind === "grammar" ? { type: kind, grammar } : tool.format } };
}

function writeChoice(choice: ToolChoice | undefined, offered: readonly Tool[]): unknown {
  if (choice?.type === "other") return fieldsOf(choice.extra, "chat");
  if (choice?.type !== "tool") return choice?.type;
  const type = kindOfChosen(choice.name, offered);
  return { type, [type]: { name: choice.name } };
}
