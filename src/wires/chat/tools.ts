/** Tools and the choice among them, read from a request's fields and written as such. */
import { fieldsOf, type Settings, type Tool, type ToolChoice } from "../../core/settings.ts";
import { readCustomTool, readFunction } from "../common.ts";
import { toFunction } from "../custom-tools.ts";
import {
  type Fields,
  invalid,
  isObject,
  isPresent,
  missing,
  notAllowed,
  pathOf,
  readChoice,
  readObject,
  readObjects,
  requireName,
  requireObject,
  requireString,
  toFields,
  unsupported,
} from "../fields.ts";
import type { Said } from "../json.ts";
import type { Habits } from "../wire.ts";

/** The caller uses `functions` and `function_call`, the form before tools, and gets its call in the same form. */
export function usesFunctions(body: Fields): boolean {
  return isPresent(body, "functions");
}

export function readTools(body: Fields): readonly Tool[] {
  const functions = readObjects(body, "functions");
  if (functions === undefined) return readObjects(body, "tools")?.map(readTool) ?? [];
  if (isPresent(body, "tools")) unsupported("functions", "'tools' replaces it: use only one of them.");
  return functions.map(readFunction);
}

function readTool(tool: Fields): Tool {
  const type = requireString(tool, "type");
  if (type === "function") return readFunction(requireObject(tool, "function"));
  if (type === "custom") return readCustomTool(requireObject(tool, "custom"));
  return { type: "other", extra: { dialect: "chat", fields: tool.values } };
}

type Chosen = Pick<Settings, "toolChoice" | "allowedTools">;

export function readToolChoice(body: Fields, tools: readonly Tool[]): Chosen {
  const key = usesFunctions(body) ? "function_call" : "tool_choice";
  const choice = body.values[key] ?? null;
  if (choice === null) return {};
  const fields = typeof choice === "string" ? undefined : toFields(choice, key);
  const isFunction = fields !== undefined && key === "function_call";
  // Some clients wrap the words in an object.
  const type = fields === undefined ? String(choice) : isFunction ? "function" : requireString(fields, "type");
  const word = words.find((known) => known === type);
  if (word === "required" && tools.length === 0) invalid(key, `'${key}' is 'required', but 'tools' has none to call.`);
  if (word !== undefined) return { toolChoice: { type: word } };
  if (fields === undefined) return notAllowed(key, type, words);
  switch (type) {
    case "function":
    case "custom": {
      const named = isFunction ? fields : requireObject(fields, type);
      return { toolChoice: { type: "tool", name: requireKnown(type, named, keysOf(tools), key) } };
    }
    case "allowed_tools":
      return readAllowed(requireObject(fields, "allowed_tools"), keysOf(tools), key);
    default:
      return { toolChoice: { type: "other", extra: { dialect: "chat", fields: fields.values } } };
  }
}

const words = ["auto", "none", "required"] as const;

function readAllowed(allowed: Fields, known: ReadonlySet<string>, key: string): Chosen {
  const mode = readChoice(allowed, "mode", ["auto", "required"]) ?? "auto";
  const chosen = readObjects(allowed, "tools") ?? missing(pathOf(allowed, "tools"));
  const names = chosen.flatMap((tool) => {
    const type = requireString(tool, "type");
    // A tool that only this dialect knows has no name.
    if (type !== "function" && type !== "custom") return [];
    return requireKnown(type, readObject(tool, type) ?? tool, known, key);
  });
  return { toolChoice: { type: mode }, allowedTools: [...new Set(names)] };
}

/** What a choice may name. Searching all tools for each allowed one could take minutes. */
function keysOf(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.flatMap((tool) => (tool.type === "other" ? [] : `${tool.type} ${tool.name}`)));
}

function requireKnown(type: string, named: Fields, known: ReadonlySet<string>, key: string): string {
  const name = requireName(named, "name");
  return known.has(`${type} ${name}`) ? name : invalid(key, `Tool choice '${name}' not found in 'tools' parameter.`);
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
  if (type === "custom") return { type, custom: { name, description, format: writeToolFormat(tool.format) } };
  return { type, function: { name, description, parameters: tool.parameters, strict: tool.strict } };
}

/** The other dialect has a grammar's fields beside its type. */
function writeToolFormat(format: unknown): unknown {
  if (!isObject(format) || format["type"] !== "grammar" || "grammar" in format) return format;
  const { type, ...grammar } = format;
  return { type, grammar };
}

function writeChoice(choice: ToolChoice | undefined, offered: readonly Tool[]): unknown {
  if (choice?.type === "other") return fieldsOf(choice.extra, "chat");
  if (choice?.type !== "tool") return choice?.type;
  const type = offered.some((tool) => tool.type === "custom" && tool.name === choice.name) ? "custom" : "function";
  return { type, [type]: { name: choice.name } };
}
