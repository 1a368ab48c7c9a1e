/** Reads what both dialects write alike: settings, options of a stream, tools, labels, and fields of their own. */
import type { Demand, Dialect, FunctionTool, Native, Settings, Tool } from "../core/settings.ts";
import {
  type Fields,
  isPresent,
  pathOf,
  readBoolean,
  readNumber,
  readObject,
  readOthers,
  readString,
  requireName,
  tooLong,
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

/** One of them pads the events of a stream, which ours does not need: it is only checked. */
export function readStreamOptions(fields: Fields): Fields | undefined {
  const options = readObject(fields, "stream_options");
  if (options !== undefined) readBoolean(options, "include_obfuscation");
  return options;
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

/** A custom tool as both dialects describe it. */
export function readCustomTool(described: Fields): Tool {
  return {
    type: "custom",
    name: requireName(described, "name"),
    description: readString(described, "description"),
    format: readObject(described, "format")?.values,
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
    const keyLength = countCharacters(name);
    if (keyLength > 64)
      throw tooLong(pathOf(metadata, name), "key too long", "a key of at most 64 characters", keyLength);
    if (typeof value !== "string") throw wrongType(pathOf(metadata, name), "a string", value);
    const length = countCharacters(value);
    if (length > 512) throw tooLong(pathOf(metadata, name), "string too long", "at most 512 characters", length);
  }
  return metadata.values as Readonly<Record<string, string>>;
}

/** Counts code points: a surrogate pair is one character. */
function countCharacters(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++) {
    // A list of all pairs would take a second for a body full of them.
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) count--;
  }
  return count;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** The fields of a dialect's request that the gateway itself does not model. */
export interface OwnWords {
  readonly dialect: Dialect;
  /** What the gateway itself sends, so it must not be sent twice; everything else is for the model. */
  readonly ours: ReadonlySet<string>;
  /** Without these the answer would differ. */
  readonly demands: readonly Demanding[];
  /** These are only offers to the model, or make it faster. */
  readonly offers: readonly string[];
}

interface Demanding extends Demand {
  /** A value that demands nothing. */
  readonly isIdle?: (value: unknown) => boolean;
}

/** Both dialects have it. */
export const moderation: Demanding = {
  param: "moderation",
  why: "The adapter behind this model cannot moderate input and output. Leave it out, or moderate them yourself.",
};

export function readNative(fields: Fields, { dialect, ours, demands, offers }: OwnWords): Native {
  const { values } = fields;
  const isSent = (param: string) => isPresent(fields, param);
  return {
    dialect,
    fields: readOthers(fields, ours) ?? {},
    demands: demands.filter(({ param, isIdle }) => isSent(param) && isIdle?.(values[param]) !== true),
    offers: offers.filter((param) => isSent(param) && !isEmptyList(values[param])),
  };
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}
