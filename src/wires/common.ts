/** What both dialects have alike, read and written: settings, labels, tools, and fields of their own. */
import { type Part, place } from "../core/item.ts";
import type { Demand, Dialect, Format, FunctionTool, Native, Settings, Tool } from "../core/settings.ts";
import {
  type Fields,
  isObject,
  isPresent,
  missing,
  pathOf,
  readBoolean,
  readChoice,
  readNumber,
  readObject,
  readOthers,
  readString,
  requireName,
  requireObject,
  type Said,
  tooLong,
  unsupported,
  wrongType,
} from "./fields.ts";

/** The settings that both dialects have, with the same names and bounds. */
export function readCommonSettings(fields: Fields): Partial<Settings> {
  return {
    parallelToolCalls: readBoolean(fields, "parallel_tool_calls"),
    temperature: readNumber(fields, "temperature", 0, 2),
    topP: readNumber(fields, "top_p", 0, 1),
    presencePenalty: readNumber(fields, "presence_penalty", -2, 2),
    frequencyPenalty: readNumber(fields, "frequency_penalty", -2, 2),
    serviceTier: readString(fields, "service_tier"),
  };
}

/** The same for a server, of a caller of the other dialect. */
export function writeCommonSettings({ native, ...settings }: Settings): Said {
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    service_tier: settings.serviceTier,
    prompt_cache_key: native?.fields["prompt_cache_key"],
    prompt_cache_retention: native?.fields["prompt_cache_retention"],
    safety_identifier: native?.fields["safety_identifier"],
  };
}

/** `isNested`: the dialect has a schema's fields below its type, and not beside it. */
export function readFormat(within: Fields, key: string, isNested: boolean): Format | undefined {
  const format = readObject(within, key);
  if (format === undefined) return undefined;
  const type = readChoice(format, "type", ["text", "json_object", "json_schema"]) ?? missing(pathOf(format, "type"));
  if (type !== "json_schema") return { type: type === "text" ? type : "json" };
  const described = isNested ? requireObject(format, type) : format;
  return {
    type: "schema",
    name: requireName(described, "name"),
    description: readString(described, "description"),
    schema: (isNested ? readObject(described, "schema")?.values : requireObject(described, "schema").values) ?? {},
    strict: readBoolean(described, "strict"),
  };
}

/** A function as both dialects describe it. */
export function readFunction(described: Fields): FunctionTool {
  return {
    type: "function",
    name: requireName(described, "name"),
    description: readString(described, "description"),
    parameters: readObject(described, "parameters")?.values,
    strict: readBoolean(described, "strict"),
  };
}

/** A custom tool as both dialects describe it, with a grammar's fields beside its type. */
export function readCustomTool(described: Fields): Extract<Tool, { type: "custom" }> {
  const format = readObject(described, "format")?.values;
  const { grammar, ...outer } = format ?? {};
  return {
    type: "custom",
    name: requireName(described, "name"),
    description: readString(described, "description"),
    format: isObject(grammar) ? { ...outer, ...grammar } : format,
  };
}

/** Labels: at most 16 pairs of strings, keys up to 64 and values up to 512 characters. */
export function readMetadata(fields: Fields, key: string): Readonly<Record<string, string>> | undefined {
  const metadata = readObject(fields, key);
  if (metadata === undefined) return undefined;
  const entries = Object.entries(metadata.values);
  if (entries.length > 16)
    throw tooLong(pathOf(metadata), "too many properties", "at most 16 properties", entries.length);
  for (const [name, value] of entries) {
    const path = pathOf(metadata, name);
    if (name.length > 64) throw tooLong(path, "key too long", "a key of at most 64 characters", name.length);
    if (typeof value !== "string") throw wrongType(path, "a string", value);
    if (value.length > 512) throw tooLong(path, "string too long", "at most 512 characters", value.length);
  }
  return metadata.values as Readonly<Record<string, string>>;
}

/** The fields of a dialect's request that the gateway itself does not model. */
export interface OwnWords {
  readonly dialect: Dialect;
  /** What the gateway itself sends, so it must not be sent twice; everything else is for the model. */
  readonly ours: ReadonlySet<string>;
  /** Without these the answer would differ. */
  readonly demands: readonly Demand[];
  /** These are only offers to the model, or make it faster. */
  readonly offers: readonly string[];
}

/** Both dialects have it. */
export const moderation: Demand = {
  param: "moderation",
  why: "The adapter behind this model cannot moderate input and output. Leave it out, or moderate them yourself.",
};

export function readNative(fields: Fields, { dialect, ours, demands, offers }: OwnWords): Native {
  return {
    dialect,
    fields: readOthers(fields, ours) ?? {},
    demands: demands.filter(({ param }) => isPresent(fields, param) && !isEmpty(fields.values[param])),
    offers: offers.filter((param) => isPresent(fields, param)),
  };
}

/** An empty list or object demands nothing. */
function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** A part that a server's dialect has no form for is never left out: the answer depends on it. */
export function refusePart(part: Part): never {
  const isOther = part.type === "other";
  const what = isOther ? `content of type '${String(part.extra.fields["type"])}'` : "files by URL";
  const why = `The adapter behind this model does not accept ${what}. Send it as text, or as a file's content.`;
  unsupported(`${part[place] ?? "content"}${isOther ? "" : ".file_url"}`, why);
}
