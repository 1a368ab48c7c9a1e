/** Writes a turn as the body of a responses request. The upstream keeps nothing: the gateway is the memory. */
import { GatewayError } from "../../../core/errors.ts";
import type { Tell } from "../../../core/ports.ts";
import type { Settings, Turn } from "../../../core/turn.ts";
import { type JsonObject, isObject, listAt, objectAt } from "../../json.ts";
import { nativeSettings } from "../native.ts";
import { commonSettings, type Spelling, writeFormat } from "../settings.ts";
import { createWritten, type Form, type Written } from "../written.ts";
import { writeItems } from "./items.ts";

export function writeRequest(
  turn: Turn,
  tell?: Tell,
  { written = createWritten() }: { readonly written?: Written | undefined } = {},
): Buffer {
  return written.write(turn.items, form, (input) => toBody(turn, input, tell));
}

/** Each item is written by itself. */
const form: Form = { name: "items", write: writeItems, isSeam: () => true };

/** A request to count the input tokens of another, of which it takes only some fields. */
export function writeCountRequest(turn: Turn): string {
  const body = toBody(turn, writeItems(turn.items), undefined);
  return JSON.stringify(Object.fromEntries(counted.map((name) => [name, body[name]])));
}

const counted = [
  "model",
  "instructions",
  "input",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning",
  "text",
  "personality",
  "truncation",
];

function toBody(turn: Turn, input: unknown, tell: Tell | undefined): JsonObject {
  const { settings } = turn;
  const native = nativeSettings(settings, "responses");
  const written = native ?? writeSettings(settings, tell);
  return {
    ...written,
    model: turn.model,
    instructions: settings.instructions,
    input,
    include: writeInclude(turn, listAt(written, "include") ?? []),
    store: false,
    stream: turn.stream ? true : undefined,
    stream_options: turn.stream ? written["stream_options"] : undefined,
  };
}

/**
 * Sealed reasoning is requested only for callers who ask for reasoning, since models that do not reason refuse it; and
 * sealed reasoning in the history shows a model that does.
 */
function writeInclude(turn: Turn, wanted: readonly unknown[]): readonly unknown[] | undefined {
  const { reasoningEffort, reasoningSummary } = turn.settings;
  const reasons =
    (reasoningEffort !== undefined && reasoningEffort !== "none") ||
    reasoningSummary !== undefined ||
    turn.items.some((item) => item.type === "reasoning" && item.encrypted !== undefined);
  const all = reasons ? [...new Set([...wanted, "reasoning.encrypted_content"])] : wanted;
  return all.length > 0 ? all : undefined;
}

/** The settings of a caller of another dialect. */
function writeSettings(settings: Settings, tell: Tell | undefined): JsonObject {
  const { reasoningEffort: effort, reasoningSummary: summary, verbosity, topLogprobs } = settings;
  const format = writeFormat(settings.format, spelling);
  if (settings.stop !== undefined && settings.stop.length > 0) refuseStop();
  if (settings.seed !== undefined) tell?.({ type: "left-out", what: "seed" });
  return {
    ...commonSettings(settings, spelling),
    max_output_tokens: writeMaxOutput(settings, tell),
    top_logprobs: topLogprobs === 0 ? undefined : topLogprobs,
    include: topLogprobs === undefined ? undefined : ["message.output_text.logprobs"],
    reasoning: effort === undefined && summary === undefined ? undefined : { effort, summary },
    text: format === undefined && verbosity === undefined ? undefined : { format, verbosity },
  };
}

/** This wire's minimum; a caller that only checks whether somebody answers is not refused for less. */
const minOutputTokens = 16;

function writeMaxOutput({ maxOutputTokens: wanted, native }: Settings, tell: Tell | undefined): number | undefined {
  if (wanted === undefined || wanted >= minOutputTokens) return wanted;
  const what = native?.fields["max_completion_tokens"] === undefined ? "max_tokens" : "max_completion_tokens";
  tell?.({ type: "changed", what, to: String(minOutputTokens) });
  return minOutputTokens;
}

const spelling: Spelling = {
  dialect: "responses",
  write: (type, fields) => ({ type, ...fields }),
  writeToolFormat,
  // On this wire a function is strict unless told otherwise, and must have parameters.
  parameters: { type: "object", properties: {} },
  strict: false,
};

/** Chat nests a grammar one level deeper than this wire. */
function writeToolFormat(format: unknown): unknown {
  if (!isObject(format)) return undefined;
  const { grammar: _, ...outer } = format;
  return { ...outer, ...objectAt(format, "grammar") };
}

function refuseStop(): never {
  throw new GatewayError(
    "unsupported_parameter",
    "Unsupported parameter: 'stop'. This gateway's adapter uses a wire protocol without stop sequences. Leave it out.",
    { param: "stop" },
  );
}
