/** Tools and the choice among them, read from a request, written for a server, and as a response object repeats them. */
import type { Tell } from "../../core/adapter.ts";
import { nameInGroup } from "../../core/offers.ts";
import type { Settings, Tool } from "../../core/settings.ts";
import { readCustomTool, readFunction } from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
  missing,
  readBoolean,
  readChoice,
  readObject,
  readObjects,
  readString,
  requireName,
  toFields,
} from "../fields.ts";
import { listAt, objectAt, type Said } from "../json.ts";

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

type Chosen = Pick<Settings, "toolChoice" | "allowedTools">;

/** A tool that the choice names must be among those given. */
export function readToolChoice(fields: Fields, tools: readonly Tool[]): Chosen {
  const { tool_choice: value = null } = fields.values;
  if (value === null) return {};
  if (typeof value === "string") {
    const type = readChoice(fields, "tool_choice", ["auto", "none", "required"]) ?? "auto";
    return { toolChoice: { type } };
  }
  const choice = toFields(value, "tool_choice");
  const type = requireName(choice, "type");
  switch (type) {
    case "function":
    case "custom":
      return { toolChoice: { type: "tool", name: requireOne(choice, toNames(tools)) } };
    case "allowed_tools": {
      const names = toNames(tools);
      const allowed = new Set<string>();
      for (const tool of readObjects(choice, "tools") ?? missing("tool_choice.tools"))
        for (const name of requireAll(tool, names)) allowed.add(name);
      const mode = readChoice(choice, "mode", ["auto", "required"]) ?? "auto";
      return { toolChoice: { type: mode }, allowedTools: [...allowed] };
    }
    default:
      return { toolChoice: { type: "other", extra: { dialect: "responses", fields: choice.values } } };
  }
}

/**
 * The names of tools by the words that may choose them: a function in a namespace by its own name or by both, a server's
 * tools by their type or by that and its label. Searching all tools for each allowed one could take minutes.
 */
type Names = Map<string, Set<string>>;

function toNames(tools: readonly Tool[]): Names {
  const names: Names = new Map();
  const add = (word: string, name: string): void => {
    names.set(word, (names.get(word) ?? new Set()).add(name));
  };
  for (const tool of tools) {
    const type = tool.type === "other" ? String(tool.extra.fields["type"]) : `${tool.type} ${tool.name}`;
    add(type, tool.name ?? type);
    if (tool.type !== "other") continue;
    if (tool.name !== undefined) add(tool.name, tool.name);
    for (const inner of tool.group?.tools ?? []) {
      const both = nameInGroup(String(tool.group?.name), String(inner.name));
      add(`${inner.type} ${inner.name}`, both);
      add(`${inner.type} ${both}`, both);
    }
  }
  return names;
}

function requireAll(chosen: Fields, names: Names): Iterable<string> {
  const type = requireName(chosen, "type");
  if (type === "function" || type === "custom") return [requireOne(chosen, names)];
  const label = readString(chosen, type === "namespace" ? "name" : "server_label");
  const word = label === undefined ? type : `${type} ${label}`;
  return names.get(word) ?? notGiven(word);
}

/** Without its namespace the one that has none is meant, or the only one with its name. */
function requireOne(chosen: Fields, names: Names): string {
  const [name, namespace] = [requireName(chosen, "name"), readString(chosen, "namespace")];
  const word = namespace === undefined ? name : nameInGroup(namespace, name);
  const meant = names.get(`${String(chosen.values["type"])} ${word}`) ?? new Set();
  const [first, second] = meant.has(word) ? [word] : meant;
  return first !== undefined && second === undefined ? first : notGiven(word);
}

function notGiven(name: string): never {
  invalid("tool_choice", `Tool choice '${name}' not found in 'tools' parameter.`);
}

/** A function has all of its fields. */
export function echoTools(fields: Fields): readonly object[] {
  return (readObjects(fields, "tools") ?? []).map(({ values }) =>
    values["type"] === "function"
      ? Object.assign({ description: null, parameters: null, strict: null }, values)
      : values,
  );
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
      return { type, name, description, format: writeToolFormat(format), defer_loading: deferred };
    }
    case "other":
      if (tool.extra.dialect === "responses") return tool.extra.fields;
      tell({ type: "left-out", what: `tool ${tool.name ?? String(tool.extra.fields["type"])}` });
      return undefined;
  }
}

const noParameters = { type: "object", properties: {} };

/** Chat nests a grammar one level deeper than this wire. */
function writeToolFormat(format: unknown): unknown {
  if (!isObject(format)) return undefined;
  const { grammar: _grammar, ...outer } = format;
  return { ...outer, ...objectAt(format, "grammar") };
}

function writeChoice({ toolChoice: choice, tools }: Settings): unknown {
  if (choice?.type === "other") return choice.extra.dialect === "responses" ? choice.extra.fields : undefined;
  if (choice?.type !== "tool") return choice?.type;
  const isCustom = tools.some((tool) => tool.type === "custom" && tool.name === choice.name);
  return { type: isCustom ? "custom" : "function", name: choice.name };
}
