/** Writes a turn as a create body, in the same words each time, so that the server's prompt caches stay whole. It keeps nothing. */
import type { Tell } from "../../core/adapter.ts";
import type { Turn } from "../../core/turn.ts";
import type { Settings } from "../../core/settings.ts";
import { unsupported } from "../fields.ts";
import { listAt, type Said } from "../json.ts";
import type { Habits } from "../wire.ts";
import { writeFormat } from "./object.ts";
import { writeTools } from "./tools.ts";
import { sendItem } from "./written.ts";

export function writeRequest(turn: Turn, { source }: Habits, tell: Tell): string {
  const { model, settings, items, stream } = turn;
  const own = settings.native?.dialect === "responses" ? settings.native.fields : undefined;
  const written = own ?? writeSettings(settings, tell);
  const body = {
    ...written,
    ...writeTools(settings, own, tell),
    model,
    instructions: settings.instructions,
    include: writeInclude(turn, listAt(written, "include") ?? []),
    store: false,
    stream: stream ? true : undefined,
    stream_options: stream ? written["stream_options"] : undefined,
  };
  const input = items.flatMap((item) => sendItem(item, source, tell) ?? []);
  return `${JSON.stringify(body).slice(0, -1)},"input":[${input.join(",")}]}`;
}

/** Sealed reasoning is asked for only where somebody reasons, since models that do not refuse it. */
function writeInclude({ settings, items }: Turn, wanted: readonly unknown[]): readonly unknown[] | undefined {
  const { reasoningEffort: effort, reasoningSummary } = settings;
  const isAsked = (effort !== undefined && effort !== "none") || reasoningSummary !== undefined;
  const reasons = isAsked || items.some((item) => item.type === "reasoning" && item.encrypted !== undefined);
  const all = reasons ? [...new Set([...wanted, "reasoning.encrypted_content"])] : wanted;
  return all.length > 0 ? all : undefined;
}

/** Those of a caller of another dialect. */
function writeSettings(settings: Settings, tell: Tell): Said {
  const { reasoningEffort: effort, reasoningSummary: summary, verbosity, topLogprobs, native } = settings;
  const format = settings.format && settings.format.type !== "text" ? writeFormat(settings.format) : undefined;
  if (settings.stop !== undefined && settings.stop.length > 0)
    unsupported("stop", "This gateway's adapter uses a wire protocol without stop sequences. Leave it out.");
  if (settings.seed !== undefined) tell({ type: "left-out", what: "seed" });
  return {
    temperature: settings.temperature,
    top_p: settings.topP,
    presence_penalty: settings.presencePenalty,
    frequency_penalty: settings.frequencyPenalty,
    service_tier: settings.serviceTier,
    max_output_tokens: writeLimit(settings, tell),
    top_logprobs: topLogprobs || undefined,
    include: topLogprobs === undefined ? undefined : ["message.output_text.logprobs"],
    reasoning: effort === undefined && summary === undefined ? undefined : { effort, summary },
    text: format === undefined && verbosity === undefined ? undefined : { format, verbosity },
    ...Object.fromEntries(common.map((name) => [name, native?.fields[name]])),
  };
}

/** Fields with the same name and meaning in both dialects. */
const common = ["prompt_cache_key", "prompt_cache_retention", "safety_identifier"];

/** This wire's minimum; a caller that only checks whether somebody answers is not refused for less. */
const leastOutputTokens = 16;

function writeLimit({ maxOutputTokens: wanted, native }: Settings, tell: Tell): number | undefined {
  if (wanted === undefined || wanted >= leastOutputTokens) return wanted;
  const what = native?.fields["max_completion_tokens"] === undefined ? "max_tokens" : "max_completion_tokens";
  tell({ type: "changed", what, to: String(leastOutputTokens) });
  return leastOutputTokens;
}
