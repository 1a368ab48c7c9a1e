/** Reads the choice among tools; a tool that it names must be among those given. */
import type { Settings, Tool } from "../../core/turn.ts";
import {
  type Fields,
  invalid,
  missing,
  readChoice,
  readObjects,
  readString,
  requireName,
  toFields,
} from "../fields.ts";

type Chosen = Pick<Settings, "toolChoice" | "allowedTools">;

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
    case "auto":
    case "none":
    case "required":
      return { toolChoice: { type } };
    case "function":
    case "custom":
      return { toolChoice: { type: "tool", name: requireOne(choice, toNames(tools)) } };
    case "allowed_tools": {
      const allowed = readObjects(choice, "tools") ?? missing("tool_choice.tools");
      const names = toNames(tools);
      const mode = readChoice(choice, "mode", ["auto", "required"]) ?? "auto";
      const allowedTools = new Set(allowed.flatMap((tool) => [...requireAll(tool, names)]));
      return { toolChoice: { type: mode }, allowedTools: [...allowedTools] };
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
    if (tool.type !== "other") add(`${tool.type} ${tool.name}`, tool.name);
    else {
      const type = String(tool.extra.fields["type"]);
      add(type, tool.name ?? type);
      if (tool.name !== undefined) add(tool.name, tool.name);
      for (const inner of tool.group?.tools ?? []) {
        if (inner.type === "other") continue;
        const both = `${tool.group?.name} ${inner.name}`;
        add(`${inner.type} ${inner.name}`, both);
        add(`${inner.type} ${both}`, both);
      }
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

/** One that stands alone is meant before those in namespaces. */
function requireOne(chosen: Fields, names: Names): string {
  const name = requireName(chosen, "name");
  const namespace = readString(chosen, "namespace");
  const word = namespace === undefined ? name : `${namespace} ${name}`;
  const meant = names.get(`${requireName(chosen, "type")} ${word}`) ?? notGiven(word);
  const [first] = meant;
  if (meant.size === 1 && first !== undefined) return first;
  return meant.has(name) ? name : notGiven(`${word}' in one of several namespaces '`);
}

function notGiven(name: string): never {
  invalid("tool_choice", `Tool choice '${name}' not found in 'tools' parameter.`);
}
