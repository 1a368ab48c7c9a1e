/** Reads the choice among tools in a create body. */
import { nameInGroup, type Settings, type Tool } from "../../core/turn.ts";
import {
  type Fields,
  invalid,
  missing,
  pathOf,
  readChoice,
  readObjects,
  readString,
  requireName,
  toFields,
} from "../fields.ts";
import { labelOf, toLabelled } from "./tools.ts";

/** Reads `tool_choice`; a tool that it names must be among those given. */
export function readToolChoice(fields: Fields, tools: readonly Tool[]): Chosen {
  const value = fields.values["tool_choice"];
  if (value === undefined || value === null) return {};
  if (typeof value === "string") {
    const type = readChoice(fields, "tool_choice", ["auto", "none", "required"]);
    return type === undefined ? {} : { toolChoice: { type } };
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
      return { toolChoice: { type: "tool", name: requireGiven(toChoices(tools), type, choice) } };
    case "allowed_tools":
      return readAllowed(choice, toChoices(tools));
    default:
      return { toolChoice: { type: "other", extra: { dialect: "responses", fields: choice.values } } };
  }
}

type Chosen = Pick<Settings, "toolChoice" | "allowedTools">;

/** What a choice may name. Searching all tools for each allowed one could take minutes. */
interface Choices {
  /** The namespaces of each type and name, undefined for none. */
  readonly places: Map<string, Set<string | undefined>>;
  /** The names of tools that only this dialect knows, by type. */
  readonly hosted: Map<unknown, Set<string>>;
}

function toChoices(tools: readonly Tool[]): Choices {
  const choices: Choices = { places: new Map(), hosted: new Map() };
  for (const tool of tools) {
    if (tool.type !== "other") {
      addTo(choices.places, toLabelled(tool.type, tool.name), undefined);
      continue;
    }
    const { type } = tool.extra.fields;
    addTo(choices.hosted, type, tool.name ?? String(type));
    for (const inner of tool.group?.tools ?? []) {
      if (inner.type !== "other") addTo(choices.places, toLabelled(inner.type, inner.name), tool.group?.name);
    }
  }
  return choices;
}

function addTo<Key, Value>(sets: Map<Key, Set<Value>>, key: Key, value: Value): void {
  const set = sets.get(key) ?? new Set();
  sets.set(key, set.add(value));
}

/** Tools that only this dialect knows are named by type, or by label if one is given. */
function readAllowed(choice: Fields, choices: Choices): Chosen {
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
  const type = readChoice(choice, "mode", ["auto", "required"]) ?? "auto";
  return { toolChoice: { type }, allowedTools: [...names] };
}

/** A tool in a namespace may be chosen without it if no other tool has its name. */
function requireGiven({ places }: Choices, type: "function" | "custom", chosen: Fields): string {
  const name = requireName(chosen, "name");
  const namespace = readString(chosen, "namespace");
  const having = places.get(toLabelled(type, name)) ?? new Set();
  const named = namespace === undefined ? name : nameInGroup(namespace, name);
  if (having.has(namespace)) return named;
  const [first] = having;
  if (namespace !== undefined || first === undefined) return notGiven(named);
  return having.size === 1 ? nameInGroup(first, name) : ambiguous(name, pathOf(chosen, "namespace"));
}

function requireHosted({ hosted }: Choices, type: string, label: string): string {
  const named = toLabelled(type, label);
  return hosted.get(type)?.has(named) ? named : notGiven(named);
}

function ambiguous(name: string, param: string): never {
  invalid(param, `Several namespaces have a tool '${name}'. Specify which one with 'namespace'.`);
}

function notGiven(name: string): never {
  invalid("tool_choice", `Tool choice '${name}' not found in 'tools' parameter.`);
}
