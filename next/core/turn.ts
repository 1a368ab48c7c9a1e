/** Ask → Turn → Answer: what the caller wants, what the adapter gets, and what came of it. */
import type { GatewayError } from "./errors.ts";
import type { Dialect, Extra, Item } from "./item.ts";

/** What a caller wants, in no dialect. */
export interface Ask {
  readonly model: string;
  /** What the caller sent: only what is new, or its whole history. */
  readonly items: readonly Item[];
  /** The caller's name for these items, in errors: `messages` or `input`. */
  readonly itemsParam: string;
  readonly settings: Settings;
  /** The caller wants the answer piece by piece. */
  readonly stream: boolean;
  /** The response that this request continues. */
  readonly previous?: string | undefined;
  readonly conversation?: string | undefined;
  /** Whom the caller speaks for; a session hint. */
  readonly user?: string | undefined;
  /** `in-session`: only under a hint or with an idempotency key. */
  readonly keep: "yes" | "no" | "in-session";
  readonly background?: boolean | undefined;
  /** The conversation is to be compacted: its summary is the answer. */
  readonly compacts?: boolean | undefined;
  /** What to do with what does not fit the window; absent: depends on the turn's place. */
  readonly truncation?: "auto" | "disabled" | undefined;
  /** What the wire wants to tell again later of this request, as JSON; absent: it tells nothing later. */
  readonly echo?: string | undefined;
}

/** How the model is to answer. Absent: the adapter's own default. */
export interface Settings {
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** The tools that may be called; absent: all. An adapter is offered only these. */
  readonly allowedTools?: readonly string[] | undefined;
  readonly parallelToolCalls?: boolean | undefined;
  readonly format?: Format | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly maxOutputTokens?: number | undefined;
  /** How many alternatives to report per token; 0 reports only the chosen one. */
  readonly topLogprobs?: number | undefined;
  readonly reasoningEffort?: string | undefined;
  readonly reasoningSummary?: string | undefined;
  readonly verbosity?: string | undefined;
  readonly serviceTier?: string | undefined;
  readonly native?: Native | undefined;
}

/** The caller's own fields, for an adapter of the same dialect, and which of them matter to any other. */
export interface Native {
  readonly dialect: Dialect;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Fields without which the answer would differ. */
  readonly demands?: readonly Demand[] | undefined;
  /** Fields the answer does not depend on. */
  readonly offers?: readonly string[] | undefined;
}

/** A field that only its own dialect can honour. */
export interface Demand {
  readonly param: string;
  /** Why another adapter cannot, and what to do. */
  readonly why: string;
}

export type Tool =
  | FunctionTool
  | {
      readonly type: "custom";
      readonly name: string;
      readonly description?: string | undefined;
      readonly format?: unknown;
      readonly deferred?: boolean | undefined;
    }
  /** A tool that only its own dialect knows, e.g. a hosted web search. */
  | {
      readonly type: "other";
      /** Its name where several share its type. Absent: its type. */
      readonly name?: string | undefined;
      /** The tools it stands for, if it is a group: they have names of their own within it. */
      readonly group?: ToolGroup | undefined;
      /** The function that the model calls for it, if it is a tool search that the caller runs. */
      readonly search?: FunctionTool | undefined;
      readonly extra: Extra;
    };

export interface FunctionTool {
  readonly type: "function";
  readonly name: string;
  readonly description?: string | undefined;
  readonly parameters?: JsonSchema | undefined;
  readonly strict?: boolean | undefined;
  /** A search must find it before it may be called. */
  readonly deferred?: boolean | undefined;
}

export interface ToolGroup {
  readonly name: string;
  readonly description?: string | undefined;
  readonly tools: readonly Tool[];
}

export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly name: string }
  | { readonly type: "other"; readonly extra: Extra };

export type Format =
  | { readonly type: "text" | "json" }
  | {
      readonly type: "schema";
      readonly name: string;
      readonly description?: string | undefined;
      readonly schema: JsonSchema;
      readonly strict?: boolean | undefined;
    };

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What an adapter gets: history in front, the model resolved. */
export interface Turn {
  readonly id: string;
  /** The caller's trace context, to be passed on. */
  readonly trace?: Trace | undefined;
  readonly model: string;
  readonly items: readonly Item[];
  readonly settings: Settings;
  readonly stream: boolean;
}

export interface Trace {
  readonly parent: string;
  readonly state: string | undefined;
}

/** What came of a turn. */
export interface Answer {
  readonly status: Status;
  readonly finish: Finish;
  readonly items: readonly Item[];
  /** What the dialect adds to its message, for the caller alone. */
  readonly extra?: Extra | undefined;
  readonly usage?: Usage | undefined;
  readonly error?: GatewayError | undefined;
  readonly notes: Notes;
  readonly endedAt: number;
  /** The last item was being said when the answer broke off. */
  readonly isBrokenOff?: boolean | undefined;
  /** What its caller should know of how it was made, whenever the answer is told. */
  readonly remarks?: readonly Remark[] | undefined;
}

/** What a caller or the operator should know of how a turn was handled, told before the first word. */
export type Remark =
  /** An earlier adapter that could not answer. */
  | { readonly type: "tried"; readonly adapter: string; readonly code: string }
  /** Part of the request that the adapter cannot accept, e.g. `tool web_search`. */
  | { readonly type: "left-out"; readonly what: string }
  /** Part of the request that it accepts only with another value. */
  | { readonly type: "changed"; readonly what: string; readonly to: string }
  /** Who is asked now, and its own name for the model. */
  | { readonly type: "asked"; readonly adapter: string; readonly model: string };

export type Status = "completed" | "incomplete" | "failed" | "cancelled";
export type Finish = "stop" | "length" | "content-filter" | "tool-calls" | "interrupted";

export interface Usage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  /** How many input tokens were written to a cache; absent: not reported. */
  readonly cacheWriteTokens?: number | undefined;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** What the adapter said about itself and the answer. */
export interface Notes {
  readonly fingerprint?: string | undefined;
  readonly serviceTier?: string | undefined;
  /** Fields of its dialect that we have no word for, for the caller alone. */
  readonly extra?: Extra | undefined;
}
