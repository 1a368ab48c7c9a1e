/** Tools and the choice among them, read from a request's fields and written as such. */
import type { Tell } from "../../core/adapter.ts";
import type { Settings, Tool, ToolChoice } from "../../core/turn.ts";
import { readCustomTool, readFunction } from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
  missing,
  notAllowed,
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
import { toFunction } from "./custom.ts";

export function readTools(body: Fields): readonly Tool[] {
  return readObjects(body, "tools")?.map(readTool) ?? [];
}

function readTool(tool: Fields): Tool {
  const type = requireString(tool, "type");
  if (type === "function") return readFunction(requireObject(tool, "function"));
  if (type === "custom") return readCustomTool(requireObject(tool, "custom"));
  return { type: "other", extra: { dialect: "chat", fields: tool.values } };
}

type Chosen = Pick<Settings, "toolChoice" | "allowedTools">;

/** Some clients wrap its words in an object. */
export function readToolChoice(body: Fields, tools: readonly Tool[]): Chosen {
  const { tool_choice: choice = null } = body.values;
  if (choice === null) return {};
  const fields = typeof choice === "string" ? undefined : toFields(choice, "tool_choice");
  const type = fields === undefined ? String(choice) : requireString(fields, "type");
  const word = words.find((known) => known === type);
  if (word === "required" && tools.length === 0)
    invalid("tool_choice", "'tool_choice' is 'required', but 'tools' has none to call.");
  if (word !== undefined) return { toolChoice: { type: word } };
  if (fields === undefined) return notAllowed("tool_choice", type, words);
  switch (type) {
    case "function":
    case "custom":
      return { toolChoice: { type: "tool", name: requireKnown(type, requireObject(fields, type), keysOf(tools)) } };
    case "allowed_tools":
      return readAllowed(requireObject(fields, "allowed_tools"), keysOf(tools));
    default:
      return { toolChoice: { type: "other", extra: { dialect: "chat", fields: fields.values } } };
  }
}

const words = ["auto", "none", "required"] as const;

function readAllowed(allowed: Fields, known: ReadonlySet<string>): Chosen {
  const mode = readChoice(allowed, "mode", ["auto", "required"]) ?? "auto";
  const chosen = readObjects(allowed, "tools") ?? missing("tool_choice.allowed_tools.tools");
  const names = chosen.flatMap((tool) => {
    const type = requireString(tool, "type");
    // A tool that only this dialect knows has no name.
    return type === "function" || type === "custom" ? requireKnown(type, readObject(tool, type) ?? tool, known) : [];
  });
  return { toolChoice: { type: mode }, allowedTools: [...new Set(names)] };
}

/** What a choice may name. Searching all tools for each allowed one could take minutes. */
function keysOf(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.flatMap((tool) => (tool.type === "other" ? [] : `${tool.type} ${tool.name}`)));
}

function requireKnown(type: "function" | "custom", named: Fields, known: ReadonlySet<string>): string {
  const name = requireName(named, "name");
  if (known.has(`${type} ${name}`)) return name;
  return invalid("tool_choice", `Tool choice '${name}' not found in 'tools' parameter.`);
}

/** Servers refuse a choice and `parallel_tool_calls` without tools. */
export function writeTools(settings: Settings, { hasCustomTools }: Habits, tell: Tell): Said {
  const offered = hasCustomTools
    ? settings.tools
    : settings.tools.map((tool) => (tool.type === "custom" ? toFunction(tool) : tool));
  const tools = offered.flatMap((tool) => writeTool(tool, tell) ?? []);
  if (tools.length === 0) return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined };
  const tool_choice = writeChoice(settings.toolChoice, offered);
  return { tools, tool_choice, parallel_tool_calls: settings.parallelToolCalls };
}

function writeTool(tool: Tool, tell: Tell): Said | undefined {
  switch (tool.type) {
    case "function": {
      const { name, description, parameters, strict } = tool;
      return { type: "function", function: { name, description, parameters, strict } };
    }
    case "custom": {
      const { name, description, format } = tool;
      return { type: "custom", custom: { name, description, format: writeToolFormat(format) } };
    }
    case "other":
      if (tool.extra.dialect === "chat") return tool.extra.fields;
      tell({ type: "left-out", what: `tool ${tool.name ?? String(tool.extra.fields["type"])}` });
      return undefined;
  }
}

/** The other dialect has a grammar's fields beside its type. */
function writeToolFormat(format: unknown): unknown {
  if (!isObject(format) || format["type"] !== "grammar" || "grammar" in format) return format;
  const { type, ...grammar } = format;
  return { type, grammar };
}

function writeChoice(choice: ToolChoice | undefined, offered: readonly Tool[]): unknown {
  if (choice?.type === "tool") {
    const type = offered.some((tool) => tool.type === "custom" && tool.name === choice.name) ? "custom" : "function";
    return { type, [type]: { name: choice.name } };
  }
  if (choice?.type !== "other") return choice?.type;
  if (choice.extra.dialect === "chat") return choice.extra.fields;
  return unsupported("tool_choice", "It asks for a tool that the adapter behind this model cannot offer.");
}
