/** Tools and the choice among them, as a create body writes them. */
import { GatewayError } from "../../core/errors.ts";
import { nameInGroup, type Tool, type ToolChoice } from "../../core/turn.ts";
import {
  type Fields,
  readBoolean,
  readChoice,
  readObject,
  readObjects,
  readString,
  requireName,
  missing,
  pathOf,
  toFields,
} from "../fields.ts";

/** Reads `tools`; a type that we do not know is kept for an adapter that does. */
export function readTools(fields: Fields): readonly Tool[] {
  return (readObjects(fields, "tools") ?? []).map(readTool);
}

/** The tools that an item brings along; what has no type or lacks its name stays in the item, and is offered to nobody. */
export function readBroughtTools(item: Fields): readonly Tool[] {
  return (readObjects(item, "tools") ?? []).filter(isTool).map(readTool);
}

function isTool(tool: Fields): boolean {
  const type = readString(tool, "type") ?? "";
  return type !== "" && (!namedTypes.has(type) || (readString(tool, "name") ?? "") !== "");
}

const namedTypes: ReadonlySet<string> = new Set(["function", "custom", "namespace"]);

function readTool(tool: Fields): Tool {
  const type = requireName(tool, "type");
  switch (type) {
    case "function":
      return {
        type: "function",
        name: requireName(tool, "name"),
        description: readString(tool, "description"),
        parameters: readObject(tool, "parameters")?.values,
        strict: readBoolean(tool, "strict"),
        ...readDeferred(tool),
      };
    case "custom":
      return {
        type: "custom",
        name: requireName(tool, "name"),
        description: readString(tool, "description"),
        format: readObject(tool, "format")?.values,
        ...readDeferred(tool),
      };
    case "namespace":
      return readNamespace(tool);
    case "tool_search":
      return readSearch(tool);
    default: {
      const label = labelOf(type, tool);
      const extra = { dialect: "responses", fields: tool.values } as const;
      return { type: "other", ...(label !== undefined && { name: toLabelled(type, label) }), extra };
    }
  }
}

function readDeferred(tool: Fields): { readonly deferred?: true } {
  return readBoolean(tool, "defer_loading") === true ? { deferred: true } : {};
}

/** Its tools stand in the group as they stand in its fields, one for one. */
function readNamespace(tool: Fields): Tool {
  const name = requireName(tool, "name");
  return {
    type: "other",
    name: toLabelled("namespace", name),
    group: { name, description: readString(tool, "description"), tools: readTools(tool) },
    extra: { dialect: "responses", fields: tool.values },
  };
}

/** The name of the function that a model calls to search for tools, where its wire has no such tool. */
export const searchName = "tool_search";

/** One that the server makes is the server's own. */
function readSearch(tool: Fields): Tool {
  const extra = { dialect: "responses", fields: tool.values } as const;
  if (readString(tool, "execution") !== "client") return { type: "other", extra };
  const description = readString(tool, "description");
  const parameters = readObject(tool, "parameters")?.values;
  return { type: "other", search: { type: "function", name: searchName, description, parameters }, extra };
}

/** What tells tools of one type apart: the label of a server, or the name of a namespace. */
function labelOf(type: string, tool: Fields): string | undefined {
  return readString(tool, type === "namespace" ? "name" : "server_label");
}

function toLabelled(type: string, label: string): string {
  return `${type} ${label}`;
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
      return { type: "tool", name: requireGiven(tools, type, choice) };
    case "allowed_tools":
      return readAllowed(choice, tools);
    default:
      return { type: "other", extra: { dialect: "responses", fields: choice.values } };
  }
}

/** Tools that only their own dialect knows go by their type, and by their label where one is named. */
function readAllowed(choice: Fields, tools: readonly Tool[]): ToolChoice {
  const allowed = readObjects(choice, "tools") ?? missing("tool_choice.tools");
  const names: string[] = [];
  for (const tool of allowed) {
    const type = requireName(tool, "type");
    if (type === "function" || type === "custom") names.push(requireGiven(tools, type, tool));
    else names.push(...requireHosted(tools, type, labelOf(type, tool)));
  }
  return { type: "allowed", mode: readChoice(choice, "mode", ["auto", "required"]) ?? "auto", names };
}

/** A tool in a namespace may be chosen without it as long as no other tool has its name. */
function requireGiven(tools: readonly Tool[], type: "function" | "custom", chosen: Fields): string {
  const name = requireName(chosen, "name");
  const namespace = readString(chosen, "namespace");
  const isMeant = (tool: Tool): boolean => tool.type === type && tool.name === name;
  if (namespace === undefined && tools.some(isMeant)) return name;
  const groups = tools.flatMap((tool) =>
    tool.type === "other" && tool.group?.tools.some(isMeant) ? [tool.group] : [],
  );
  const meant = groups.filter((group) => namespace === undefined || group.name === namespace);
  const [first] = meant;
  if (first === undefined) return notGiven(namespace === undefined ? name : nameInGroup(namespace, name));
  if (meant.some((group) => group.name !== first.name)) return ambiguous(name, pathOf(chosen, "namespace"));
  return nameInGroup(first.name, name);
}

function requireHosted(tools: readonly Tool[], type: string, label: string | undefined): readonly string[] {
  const named = label === undefined ? type : toLabelled(type, label);
  const names = tools.flatMap((tool) => {
    if (tool.type !== "other" || tool.extra.fields["type"] !== type) return [];
    return label === undefined || tool.name === named ? [tool.name ?? type] : [];
  });
  return names.length > 0 ? names : notGiven(named);
}

function ambiguous(name: string, param: string): never {
  throw new GatewayError("invalid_value", `Several namespaces have a tool '${name}'. Say which one with 'namespace'.`, {
    param,
  });
}

function notGiven(name: string): never {
  throw new GatewayError("invalid_value", `Tool choice '${name}' not found in 'tools' parameter.`, {
    param: "tool_choice",
  });
}
