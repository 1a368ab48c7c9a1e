/** Reads which tools a caller wants called. Chat completions have what belongs to a type below it, responses beside it. */
import { nameInGroup } from "../core/offers.ts";
import type { Dialect, Settings, Tool } from "../core/settings.ts";
import {
  type Fields,
  invalid,
  isObject,
  missing,
  pathOf,
  readChoice,
  readObject,
  readObjects,
  readString,
  requireName,
  requireObject,
  toFields,
} from "./fields.ts";

type Chosen = Pick<Settings, "toolChoice" | "allowedTools">;

/** A tool that the choice names must be among those given. */
export function readToolChoice(fields: Fields, tools: readonly Tool[], dialect: Dialect): Chosen {
  const { tool_choice: value = null } = fields.values;
  if (value === null) return {};
  if (!isObject(value)) {
    const type = readChoice(fields, "tool_choice", ["auto", "none", "required"]) ?? "auto";
    if (type === "required" && tools.length === 0)
      invalid("tool_choice", "'tool_choice' is 'required', but 'tools' has none to call.");
    return { toolChoice: { type } };
  }
  const choice = toFields(value, "tool_choice");
  const type = requireName(choice, "type");
  if (!known.has(type)) return { toolChoice: { type: "other", extra: { dialect, fields: choice.values } } };
  const given = dialect === "chat" ? requireObject(choice, type) : choice;
  const names = toNames(tools);
  if (type !== "allowed_tools") return { toolChoice: { type: "tool", name: requireOne(type, given, names) } };
  const mode = readChoice(given, "mode", ["auto", "required"]) ?? "auto";
  const allowed = new Set<string>();
  for (const tool of readObjects(given, "tools") ?? missing(pathOf(given, "tools")))
    for (const name of requireAll(tool, names)) allowed.add(name);
  return { toolChoice: { type: mode }, allowedTools: [...allowed] };
}

const known = new Set(["function", "custom", "allowed_tools"]);

/** The names of tools by the words that may choose them. Searching all tools for each allowed one could take minutes. */
type Names = ReadonlyMap<string, readonly Choosable[]>;
type Choosable = readonly [word: string, name: string];

function toNames(tools: readonly Tool[]): Names {
  return Map.groupBy(tools.flatMap(wordsOf), ([word]) => word);
}

/** A function in a namespace goes by its own name or by both, a server's tools by their type or by that and their label. */
function wordsOf(tool: Tool): readonly Choosable[] {
  if (tool.type !== "other") return [[`${tool.type} ${tool.name}`, tool.name]];
  const type = String(tool.extra.fields["type"]);
  const { name = type, group } = tool;
  const inner = (group?.tools ?? []).flatMap((one): readonly Choosable[] => {
    const both = nameInGroup(String(group?.name), String(one.name));
    return [`${one.type} ${one.name}`, `${one.type} ${both}`].map((word) => [word, both]);
  });
  return [[type, name], [name, name], ...inner];
}

function requireAll(chosen: Fields, names: Names): Iterable<string> {
  const type = requireName(chosen, "type");
  if (type === "function" || type === "custom") return [requireOne(type, readObject(chosen, type) ?? chosen, names)];
  const label = readString(chosen, type === "namespace" ? "name" : "server_label");
  const word = label === undefined ? type : `${type} ${label}`;
  return names.get(word)?.map(([, name]) => name) ?? notGiven(word);
}

/** Without its namespace the one that has none is meant, or the only one with its name. */
function requireOne(type: string, chosen: Fields, names: Names): string {
  const [name, namespace] = [requireName(chosen, "name"), readString(chosen, "namespace")];
  const word = namespace === undefined ? name : nameInGroup(namespace, name);
  const meant = new Set(names.get(`${type} ${word}`)?.map(([, name]) => name));
  const [first, second] = meant.has(word) ? [word] : meant;
  return first !== undefined && second === undefined ? first : notGiven(word);
}

function notGiven(name: string): never {
  invalid("tool_choice", `Tool choice '${name}' not found in 'tools' parameter.`);
}

/** The kind of the tool that a choice names, as it is offered. */
export function kindOfChosen(name: string, tools: readonly Tool[]): "custom" | "function" {
  return tools.some((tool) => tool.type === "custom" && tool.name === name) ? "custom" : "function";
}
