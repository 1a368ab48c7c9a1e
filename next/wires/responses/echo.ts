/** What a response object repeats of its request: a text, made once, that is kept with the turn to tell it again. */
import type { Ask, Format } from "../../core/turn.ts";
import { readMetadata } from "../common.ts";
import { type Fields, readInteger, readString, readStrings } from "../fields.ts";
import type { Seal } from "../wire.ts";
import { echoTools } from "./tools.ts";

export interface Echo {
  /** The fields that never change, as JSON without braces. */
  readonly fixed: string;
  readonly asked: Asked;
}

/** What the rest of the object depends on. */
interface Asked {
  readonly serviceTier: string;
  readonly truncation: "auto" | "disabled" | null;
  readonly conversation: string | null;
  /** It names what it continues. */
  readonly isNamed: boolean;
  readonly user: string | null;
  /** Reasoning is told as its summary. */
  readonly summarises: boolean;
  readonly showsSeals: boolean;
}

export function toEcho(fields: Fields, { settings, previous, conversation, ...ask }: Ask): Echo {
  const { reasoningEffort: effort = null, reasoningSummary: summary = null } = settings;
  return {
    fixed: toText({
      background: ask.background,
      frequency_penalty: settings.frequencyPenalty ?? 0,
      instructions: settings.instructions ?? null,
      max_output_tokens: settings.maxOutputTokens ?? null,
      max_tool_calls: readInteger(fields, "max_tool_calls", 1) ?? null,
      parallel_tool_calls: settings.parallelToolCalls ?? true,
      presence_penalty: settings.presencePenalty ?? 0,
      previous_response_id: previous ?? null,
      prompt_cache_key: readString(fields, "prompt_cache_key") ?? null,
      reasoning: { effort, summary },
      safety_identifier: readString(fields, "safety_identifier") ?? null,
      store: ask.keep === "yes",
      temperature: settings.temperature ?? 1,
      text: { format: writeFormat(settings.format, null), verbosity: settings.verbosity ?? "medium" },
      tool_choice: fields.values["tool_choice"] ?? "auto",
      tools: echoTools(fields),
      top_logprobs: settings.topLogprobs ?? 0,
      top_p: settings.topP ?? 1,
      metadata: readMetadata(fields, "metadata") ?? {},
    }),
    asked: {
      serviceTier: settings.serviceTier ?? "auto",
      truncation: ask.truncation ?? null,
      conversation: conversation ?? null,
      isNamed: (previous ?? conversation) !== undefined,
      user: ask.user ?? null,
      summarises: summary !== null,
      showsSeals: readStrings(fields, "include")?.includes("reasoning.encrypted_content") ?? false,
    },
  };
}

export function writeFormat(format: Format = { type: "text" }, noStrict?: null): object {
  if (format.type !== "schema") return { type: format.type === "json" ? "json_object" : "text" };
  const { name, description, schema, strict = noStrict } = format;
  return { type: "json_schema", description, name, schema, strict };
}

/** An object's fields as JSON, without the braces. */
export function toText(fields: object): string {
  return JSON.stringify(fields).slice(1, -1);
}

/** The caller's `user` is never kept in readable form. */
export function writeEcho({ fixed, asked }: Echo, seal: Seal): string {
  const kept = asked.user === null ? asked : { ...asked, user: seal.seal(asked.user) };
  return `[${JSON.stringify(kept)},{${fixed}}]`;
}

export function readEcho(text: string, seal: Seal): Echo {
  const [asked, fixed] = JSON.parse(text) as readonly [Asked, object];
  const user = asked.user === null ? null : (seal.open(asked.user) ?? null);
  return { fixed: toText(fixed), asked: { ...asked, user } };
}
