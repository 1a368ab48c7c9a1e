/** Reads the tools of a create body. */
import type { Tool } from "../../core/turn.ts";
import { readCustomTool, readFunction } from "../common.ts";
import {
  type Fields,
  readBoolean,
  readObject,
  readObjects,
  readString,
  requireName,
  requireShortName,
} from "../fields.ts";

/** Reads `tools`; an unknown type is kept for an adapter that knows it. */
export function readTools(fields: Fields): readonly Tool[] {
  return (readObjects(fields, "tools") ?? []).map(readTool);
}

/** The tools that an item brings along; those without a type or a required name stay in it and are never offered. */
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
      return { ...readFunction(tool), ...readDeferred(tool) };
    case "custom":
      return { ...readCustomTool(tool), ...readDeferred(tool) };
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

/** Its group has the same tools as its fields, one for one. */
function readNamespace(tool: Fields): Tool {
  const name = requireShortName(tool, "name");
  return {
    type: "other",
    name: toLabelled("namespace", name),
    group: { name, description: readString(tool, "description"), tools: readInnerTools(tool) },
    extra: { dialect: "responses", fields: tool.values },
  };
}

/** No model knows nested namespaces: an inner one stays in the outer one's fields. */
function readInnerTools(namespace: Fields): readonly Tool[] {
  return (readObjects(namespace, "tools") ?? []).map((tool) =>
    readString(tool, "type") === "namespace"
      ? { type: "other", extra: { dialect: "responses", fields: tool.values } }
      : readTool(tool),
  );
}

/** The function that a model calls to search for tools if its wire has no such tool. */
export const searchName = "tool_search";

/** A search that the server runs is its own. */
function readSearch(tool: Fields): Tool {
  const extra = { dialect: "responses", fields: tool.values } as const;
  if (readString(tool, "execution") !== "client") return { type: "other", extra };
  const description = readString(tool, "description");
  const parameters = readObject(tool, "parameters")?.values;
  return { type: "other", search: { type: "function", name: searchName, description, parameters }, extra };
}

/** What distinguishes tools of one type: a server's label, or a namespace's name. */
export function labelOf(type: string, tool: Fields): string | undefined {
  return readString(tool, type === "namespace" ? "name" : "server_label");
}

/** How a choice names it. */
export function toLabelled(type: string, label: string): string {
  return `${type} ${label}`;
}

/** The tools as the response object repeats them. */
export function echoTools(fields: Fields): readonly object[] {
  return (readObjects(fields, "tools") ?? []).map(echoTool);
}

/** A function always has all of its fields. */
function echoTool({ values }: Fields): object {
  if (values["type"] !== "function") return withoutNulls(values);
  const { type, description = null, name, parameters = null, strict = null, ...others } = values;
  return { type, description, name, ...withoutNulls(others), parameters, strict };
}

function withoutNulls(values: Fields["values"]): Fields["values"] {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
}
