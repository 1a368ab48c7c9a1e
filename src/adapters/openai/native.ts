/** Forwards opaque fields only in the dialect they came in, and never those that the gateway itself handles. */
import { type Dialect, type Extra, fieldsOf } from "../../core/item.ts";
import type { Settings } from "../../core/turn.ts";
import type { JsonObject } from "../json.ts";
import { type ChoiceSpelling, writeToolChoice } from "./choice.ts";

/** The caller's own settings, if the upstream speaks the caller's dialect. */
export function nativeSettings({ native }: Settings, dialect: Dialect): JsonObject | undefined {
  const fields = fieldsOf(native, dialect);
  if (fields === undefined) return undefined;
  return { ...fields, ...ours };
}

/** Settings of a caller of another dialect that both wires have, with the same name and meaning. */
export function commonSettings(settings: Settings, tools: readonly unknown[], spelling: ChoiceSpelling): JsonObject {
  const isOffered = tools.length > 0;
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    service_tier: settings.serviceTier,
    tools: isOffered ? tools : undefined,
    tool_choice: writeToolChoice(settings, isOffered, spelling),
    parallel_tool_calls: isOffered ? settings.parallelToolCalls : undefined,
    ...Object.fromEntries(common.map((name) => [name, settings.native?.fields[name]])),
  };
}

const common = ["prompt_cache_key", "prompt_cache_retention", "safety_identifier"];

/** What the upstream said that we do not know; undefined if nothing. */
export function extraOf(said: JsonObject, known: ReadonlySet<string>, dialect: Dialect): Extra | undefined {
  const unknown = Object.entries(said).filter(([key, value]) => !known.has(key) && value !== null);
  return unknown.length === 0 ? undefined : { dialect, fields: Object.fromEntries(unknown) };
}

/** The gateway is the memory, so the upstream must not be; and the caller's `user` never leaves the gateway. */
const ours = {
  store: undefined,
  user: undefined,
  background: undefined,
  conversation: undefined,
  previous_response_id: undefined,
} as const;
