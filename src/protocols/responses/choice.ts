/** The choice among the tools, as a create body writes it. */
import { GatewayError } from "../../core/errors.ts";
import { nameInGroup, type Tool, type ToolChoice } from "../../core/turn.ts";
import { type Fields, missing, pathOf, readChoice, readObjects, readString, requireName, toFields } from "../fields.ts";
import { labelOf, toLabelled } from "./tools.ts";

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
      return { type: "tool", name: requireGiven(toChoices(tools), type, choice) };
    case "allowed_tools":
      return readAllowed(choice, toChoices(tools));
    default:
      return { type: "other", extra: { dialect: "responses", fields: choice.values } };
  }
}

/** What a choice may name. A look at all tools for each that is allowed would take minutes where both are many. */
interface Choices {
  /** Those that stand alone, by type and name. */
  readonly alone: Set<string>;
  /** The namespaces that have such a tool. */
  readonly groups: Map<string, Set<string>>;
  /** The names of those that only their own dialect knows, by their type. */
  readonly hosted: Map<unknown, Set<string>>;
}

function toChoices(tools: readonly Tool[]): Choices {
  const choices: Choices = { alone: new Set(), groups: new Map(), hosted: new Map() };
  for (const tool of tools) {
    if (tool.type !== "other") {
      choices.alone.add(keyOf(tool.type, tool.name));
      continue;
    }
    const { type } = tool.extra.fields;
    addTo(choices.hosted, type, tool.name ?? String(type));
    for (const inner of tool.group?.tools ?? []) {
      if (tool.group && inner.type !== "other") addTo(choices.groups, keyOf(inner.type, inner.name), tool.group.name);
    }
  }
  return choices;
}

function keyOf(type: "function" | "custom", name: string): string {
  return `${type} ${name}`;
}

function addTo<Key>(sets: Map<Key, Set<string>>, key: Key, value: string): void {
  const set = sets.get(key) ?? new Set();
  sets.set(key, set.add(value));
}

/** Tools that only their own dialect knows go by their type, and by their label where one is named. */
function readAllowed(choice: Fields, choices: Choices): ToolChoice {
  const allowed = readObjects(choice, "tools") ?? missing("tool_choice.tools");
  const names = new Set<string>();
  const types = new Set<string>();
  for (const tool of allowed) {
    const type = requireName(tool, "type");
    const label = labelOf(type, tool);
    if (type === "function" || type === "custom") names.add(requireGiven(choices, type, tool));
    else if (label !== undefined) names.add(requireHosted(choices, type, label));
    else types.add(choices.hosted.has(type) ? type : notGiven(type));
  }
  for (const type of types) for (const name of choices.hosted.get(type) ?? []) names.add(name);
  return { type: "allowed", mode: readChoice(choice, "mode", ["auto", "required"]) ?? "auto", names: [...names] };
}

/** A tool in a namespace may be chosen without it as long as no other tool has its name. */
function requireGiven({ alone, groups }: Choices, type: "function" | "custom", chosen: Fields): string {
  const name = requireName(chosen, "name");
  const namespace = readString(chosen, "namespace");
  if (namespace === undefined && alone.has(keyOf(type, name))) return name;
  const having = groups.get(keyOf(type, name)) ?? new Set();
  if (namespace !== undefined) {
    const named = nameInGroup(namespace, name);
    return having.has(namespace) ? named : notGiven(named);
  }
  const [first] = having;
  if (first === undefined) return notGiven(name);
  return having.size === 1 ? nameInGroup(first, name) : ambiguous(name, pathOf(chosen, "namespace"));
}

function requireHosted({ hosted }: Choices, type: string, label: string): string {
  const named = toLabelled(type, label);
  return hosted.get(type)?.has(named) ? named : notGiven(named);
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
