/** Tools, read from a request, written for a server, and as a response object repeats them. */
import type { Tell } from "../../core/adapter.ts";
import type { Settings, Tool } from "../../core/settings.ts";
import { kindOfChosen } from "../choice.ts";
import { readCustomTool, readFunction } from "../common.ts";
import {
  type Fields,
  listAt,
  readBoolean,
  readObject,
  readObjects,
  readString,
  requireName,
  type Said,
} from "../fields.ts";

/** An unknown type is kept for an adapter that knows it. */
export function readTools(fields: Fields): readonly Tool[] {
  return (readObjects(fields, "tools") ?? []).map(readTool);
}

function readTool(tool: Fields): Tool {
  const type = requireName(tool, "type");
  const extra = { dialect: "responses", fields: tool.values } as const;
  const deferred = readBoolean(tool, "defer_loading") === true ? { deferred: true } : undefined;
  switch (type) {
    case "function":
      return { ...readFunction(tool), ...deferred };
    case "custom":
      return { ...readCustomTool(tool), ...deferred };
    case "namespace": {
      // The group has the same tools as the fields, one for one.
      const group = { name: requireName(tool, "name"), description: readString(tool, "description") };
      return { type: "other", name: `${type} ${group.name}`, group: { ...group, tools: readTools(tool) }, extra };
    }
    case "tool_search": {
      // A search that the server runs is its own.
      if (readString(tool, "execution") !== "client") return { type: "other", extra };
      const description = readString(tool, "description");
      const parameters = readObject(tool, "parameters")?.values;
      return { type: "other", search: { type: "function", name: searchName, description, parameters }, extra };
    }
    default: {
      const label = readString(tool, "server_label");
      return { type: "other", name: label === undefined ? undefined : `${type} ${label}`, extra };
    }
  }
}

/** The function that a model calls to search for tools where its wire has no such tool. */
export const searchName = "tool_search";

/** A function has all of its fields; null is absent in any other. */
export function echoTools(fields: Fields): readonly object[] {
  return (readObjects(fields, "tools") ?? []).map(({ values }) => {
    const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
    if (given["type"] !== "function") return given;
    return Object.assign({ description: null, parameters: null, strict: null }, given);
  });
}

/** A caller of this dialect has its tools passed on as it wrote them, unless some must not be called. */
export function writeTools(settings: Settings, own: Said | undefined, tell: Tell): Said {
  const written = (own && listAt(own, "tools")) ?? [];
  const isAsWritten = (tool: Tool, at: number): boolean => tool.type !== "other" || tool.extra.fields === written[at];
  if (own !== undefined && settings.tools.length === written.length && settings.tools.every(isAsWritten)) return {};
  const tools = settings.tools.flatMap((tool) => writeTool(tool, tell) ?? []);
  if (tools.length === 0) return { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined };
  return { tools, tool_choice: writeChoice(settings), parallel_tool_calls: settings.parallelToolCalls };
}

/** On this wire a function is strict unless it says otherwise, and must have parameters. */
function writeTool(tool: Tool, tell: Tell): Said | undefined {
  switch (tool.type) {
    case "function": {
      const { type, name, description, parameters = noParameters, strict = false, deferred } = tool;
      return { type, name, description, parameters, strict, defer_loading: deferred };
    }
    case "custom": {
      const { type, name, description, format, deferred } = tool;
      return { type, name, description, format, defer_loading: deferred };
    }
    case "other":
      if (tool.extra.dialect === "responses") return tool.extra.fields;
      tell({ type: "left-out", what: `tool ${tool.name ?? String(tool.extra.fields["type"])}` });
      return undefined;
  }
}

const noParameters = { type: "object", properties: {} };

function writeChoice({ toolChoice: choice, tools }: Settings): unknown {
  if (choice?.type === "other") return choice.extra.dialect === "responses" ? choice.extra.fields : undefined;
  if (choice?.type !== "tool") return choice?.type;
  return { type: kindOfChosen(choice.name, tools), name: choice.name };
}
