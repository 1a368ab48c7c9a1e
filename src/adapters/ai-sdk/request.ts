/** Writes a turn as a language model call. */
import type {
  JSONObject,
  JSONSchema7,
  JSONValue,
  LanguageModelV3CallOptions,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type { Format, Settings, Turn } from "../../core/turn.ts";
import { isObject } from "../json.ts";
import type { MediaLimits } from "../media/limits.ts";
import { writePrompt } from "./prompt.ts";
import type { Call, LanguageModel } from "./spec.ts";
import { writeTools } from "./tools.ts";

/** `reportOmission` is told what the turn asks for but no provider package can take. */
export function writeRequest(
  turn: Turn,
  model: Pick<LanguageModel, "provider" | "specificationVersion">,
  configured: SharedV3ProviderOptions,
  reportOmission: (what: string) => void,
  limits: MediaLimits,
): Call {
  const { settings } = turn;
  for (const [what, asked] of unknownSettings(settings)) if (asked) reportOmission(what);
  const effort = writeEffort(settings.reasoningEffort, model, reportOmission);
  return {
    prompt: writePrompt(settings.instructions, turn.items, limits),
    ...writeTools(settings, reportOmission),
    maxOutputTokens: settings.maxOutputTokens,
    temperature: settings.temperature,
    topP: settings.topP,
    presencePenalty: settings.presencePenalty,
    frequencyPenalty: settings.frequencyPenalty,
    seed: settings.seed,
    stopSequences: settings.stop && [...settings.stop],
    responseFormat: writeFormat(settings.format),
    reasoning: effort.reasoning,
    // The operator's settings override the caller's.
    providerOptions: mergeOptions(effort.providerOptions ?? {}, configured),
  };
}

function unknownSettings(settings: Settings): readonly (readonly [what: string, asked: boolean])[] {
  return [
    ["parallel_tool_calls", settings.parallelToolCalls === false],
    ["top_logprobs", settings.topLogprobs !== undefined],
    ["verbosity", settings.verbosity !== undefined],
  ];
}

function writeFormat(format: Format | undefined): LanguageModelV3CallOptions["responseFormat"] {
  switch (format?.type) {
    case undefined:
    case "text":
      return undefined;
    case "json":
      return { type: "json" };
    case "schema": {
      const { name, description, schema } = format;
      // Only the provider reads the schema.
      return { type: "json", name, description, schema: schema as JSONSchema7 };
    }
  }
}

/** Version 4 of the specification has a field for it; before, each provider had its own. */
function writeEffort(
  effort: string | undefined,
  model: Pick<LanguageModel, "provider" | "specificationVersion">,
  reportOmission: (what: string) => void,
): Pick<Call, "reasoning" | "providerOptions"> {
  if (effort === undefined) return {};
  const isKnown = efforts.has(effort);
  if (isKnown && model.specificationVersion === "v4") return { reasoning: effort };
  const [name = ""] = model.provider.split(".");
  const write = effortOfProvider.get(name) ?? ((reasoningEffort) => ({ reasoningEffort }));
  const options = isKnown ? write(effort) : undefined;
  if (options !== undefined) return { providerOptions: { [name]: options } };
  reportOmission("reasoning_effort");
  return {};
}

const efforts: ReadonlySet<string> = new Set(["none", "minimal", "low", "medium", "high", "xhigh", "max"]);

/** Providers that do not call it `reasoningEffort`. */
const effortOfProvider: ReadonlyMap<string, (effort: string) => JSONObject | undefined> = new Map(
  Object.entries({
    anthropic: (effort) => (effort === "none" ? undefined : { effort: effort === "minimal" ? "low" : effort }),
    google(effort) {
      if (effort === "none") return undefined;
      return { thinkingConfig: { thinkingLevel: effort === "xhigh" || effort === "max" ? "high" : effort } };
    },
  } satisfies Record<string, (effort: string) => JSONObject | undefined>),
);

function mergeOptions(one: SharedV3ProviderOptions, other: SharedV3ProviderOptions): SharedV3ProviderOptions {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries([...names].map((name) => [name, merge(one[name] ?? {}, other[name] ?? {})]));
}

/** Merges objects key by key; otherwise the second value wins. */
function merge(one: JSONObject, other: JSONObject): JSONObject {
  const merged = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const before = merged[key];
    merged[key] = isJsonObject(before) && isJsonObject(value) ? merge(before, value) : value;
  }
  return merged;
}

function isJsonObject(value: JSONValue | undefined): value is JSONObject {
  return isObject(value);
}
