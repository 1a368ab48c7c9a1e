/** Tools and the choice among them, as a create body writes them. */
import { GatewayError } from "../../core/errors.ts";
import type { Tool, ToolChoice } from "../../core/turn.ts";
import {
  type Fields,
  readBoolean,
  readChoice,
  readObject,
  readObjects,
  readString,
  requireName,
  missing,
  toFields,
} from "../fields.ts";

/** Reads `tools`; a type that we do not know is kept for an adapter that does. */
export function readTools(fields: Fields): readonly Tool[] {
  return (readObjects(fields, "tools") ?? []).map(readTool);
}

function readTool(tool: Fields): Tool {
  switch (requireName(tool, "type")) {
    case "function":
      return {
        type: "function",
        name: requireName(tool, "name"),
        description: readString(tool, "description"),
        parameters: readObject(tool, "parameters")?.values,
        strict: readBoolean(tool, "strict"),
      };
    case "custom":
      return {
        type: "custom",
        name: requireName(tool, "name"),
        description: readString(tool, "description"),
        format: readObject(tool, "format")?.values,
      };
    default:
      return { type: "other", extra: { dialect: "responses", fields: tool.values } };
  }
}

/** The tools as the response object repeats them. */
export function echoTools(fields: Fields): readonly object[] {
  return (readObjects(fields, "tools") ?? []).map(echoTool);
}

/** A function always shows all of its fields. */
function echoTool({ values }: Fields): object {
  if (values["type"] !== "function") return withoutNulls(values);
  const { type, description = null, name, parameters = null, strict = null, ...others } = values;
  return { type, description, name, ...withoutNulls(others), parameters, strict };
}

function withoutNulls(values: Fields["values"]): Fields["values"] {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}

/** Reads `tool_choice`; a tool that it names must be among the tools given. */
export function readToolChoice(fields: Fields, tools: readonly Tool[]): ToolChoice | undefined {
  const value = fields.values["tool_choice"];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") {
    const type = readChoice(fields, "tool_choice", ["auto", "none", "required"]);
    return type && { type };
  }
  const choice = toFields(value, "tool_choice");
  const type = requireName(choice, "type");
  switch (type) {
    case "auto":
    case "none":
    case "required":
      return { type };
    case "function":
    case "custom":
      return { type: "tool", name: requireGiven(tools, type, requireName(choice, "name")) };
    case "allowed_tools":
      return readAllowed(choice, tools);
    default:
      return { type: "other", extra: { dialect: "responses", fields: choice.values } };
  }
}

/** Tools that only their own dialect knows go by their type. */
function readAllowed(choice: Fields, tools: readonly Tool[]): ToolChoice {
  const allowed = readObjects(choice, "tools") ?? missing("tool_choice.tools");
  const names: string[] = [];
  for (const tool of allowed) {
    const type = requireName(tool, "type");
    if (type === "function" || type === "custom") names.push(requireGiven(tools, type, requireName(tool, "name")));
    else names.push(type);
  }
  return { type: "allowed", mode: readChoice(choice, "mode", ["auto", "required"]) ?? "auto", names };
}

function requireGiven(tools: readonly Tool[], type: "function" | "custom", name: string): string {
  if (tools.some((tool) => tool.type === type && tool.name === name)) return name;
  throw new GatewayError("invalid_value", `Tool choice '${name}' not found in 'tools' parameter.`, {
    param: "tool_choice",
  });
}
