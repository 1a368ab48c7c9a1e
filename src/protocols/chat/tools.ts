/** Reads `tools` and `tool_choice`. */
import type { Settings, Tool, ToolChoice } from "../../core/turn.ts";
import { readCustomTool, readFunction } from "../common.ts";
import {
  type Fields,
  invalid,
  missing,
  notAllowed,
  readChoice,
  readObject,
  readObjects,
  requireName,
  requireObject,
  requireString,
  toFields,
} from "../fields.ts";

export function readTools(body: Fields): readonly Tool[] {
  return readObjects(body, "tools")?.map(readTool) ?? [];
}

function readTool(tool: Fields): Tool {
  const type = requireString(tool, "type");
  if (type === "function") return readFunction(requireObject(tool, "function"));
  if (type === "custom") return readCustomTool(requireObject(tool, "custom"));
  return { type: "other", extra: { dialect: "chat", fields: tool.values } };
}

const words = ["auto", "none", "required"] as const;

export function readToolChoice(body: Fields, tools: readonly Tool[]): Pick<Settings, "toolChoice" | "allowedTools"> {
  const { tool_choice: choice } = body.values;
  if (choice === undefined || choice === null) return {};
  if (typeof choice === "string") {
    const word = words.find((known) => known === choice) ?? notAllowed("tool_choice", choice, words);
    return { toolChoice: toWord(word, tools) };
  }
  const fields = toFields(choice, "tool_choice");
  const type = requireString(fields, "type");
  switch (type) {
    // Some clients wrap the words.
    case "auto":
    case "none":
    case "required":
      return { toolChoice: toWord(type, tools) };
    case "function":
    case "custom":
      return { toolChoice: { type: "tool", name: requireKnown(type, requireObject(fields, type), keysOf(tools)) } };
    case "allowed_tools": {
      const allowed = requireObject(fields, "allowed_tools");
      const chosen = readObjects(allowed, "tools") ?? missing("tool_choice.allowed_tools.tools");
      const known = keysOf(tools);
      return {
        toolChoice: { type: readChoice(allowed, "mode", ["auto", "required"]) ?? "auto" },
        allowedTools: [...new Set(chosen.flatMap((tool) => readAllowed(tool, known)))],
      };
    }
    default:
      return { toolChoice: { type: "other", extra: { dialect: "chat", fields: fields.values } } };
  }
}

function toWord(word: (typeof words)[number], tools: readonly Tool[]): ToolChoice {
  if (word !== "required" || tools.length > 0) return { type: word };
  return invalid("tool_choice", "'tool_choice' is 'required', but 'tools' has none to call.");
}

/** A tool that only this dialect knows has no name. */
function readAllowed(tool: Fields, known: ReadonlySet<string>): readonly string[] {
  const type = requireString(tool, "type");
  if (type !== "function" && type !== "custom") return [];
  return [requireKnown(type, readObject(tool, type) ?? tool, known)];
}

/** What a choice may name. Searching all tools for each allowed one could take minutes. */
function keysOf(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.flatMap((tool) => (tool.type === "other" ? [] : [`${tool.type} ${tool.name}`])));
}

function requireKnown(type: "function" | "custom", named: Fields, known: ReadonlySet<string>): string {
  const name = requireName(named, "name");
  if (known.has(`${type} ${name}`)) return name;
  return invalid("tool_choice", `Tool choice '${name}' not found in 'tools' parameter.`);
}
