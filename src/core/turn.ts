/** Ask → Turn → Answer: what the caller wants, what the adapter gets, and the result. */
import type { GatewayError } from "./errors.ts";
import type { OutputItem } from "./event.ts";
import type { Extra, Item, Part } from "./item.ts";
import type { Pieces } from "./frame/pieces.ts";

/** What a caller wants, in no wire's dialect. Its items may be references to stored ones, until resolved. */
export interface Ask<Asked = Item | Reference> {
  readonly model: string;
  /** What the caller sent: only what is new, or its whole history. */
  readonly items: readonly Asked[];
  /** The caller's name for these items, in errors. */
  readonly itemsParam: string;
  /** A call among them without an output is refused, even if they continue nothing; absent: the model decides. */
  readonly needsOutputs?: boolean | undefined;
  /** The caller's word for its tools; absent: `tools`. */
  readonly toolsParam?: string | undefined;
  /** For errors about a part; absent: they name `itemsParam`. */
  readonly pathOf?: PathOf | undefined;
  readonly settings: Settings;
  /** The caller wants the answer piece by piece. */
  readonly stream: boolean;
  /** The response that this request continues. */
  readonly previousId?: string | undefined;
  /** The conversation that this request continues. */
  readonly conversationId?: string | undefined;
  /** Whom the caller speaks for; a session hint. */
  readonly user?: string | undefined;
  /** `in-session`: only in a session or with an idempotency key. */
  readonly keep: "yes" | "no" | "in-session";
  /** The turn is to run without its caller, who comes back for it: it is stored, whatever `keep` says. */
  readonly background?: boolean | undefined;
  /** The conversation is to be compacted: its summary is the answer. */
  readonly compacts?: boolean | undefined;
  /** The conversation is to be compacted before it is answered if it has become too long. */
  readonly compactsBeyond?: CompactionLimit | undefined;
  /** What to do if the conversation exceeds the model's context window; absent: depends on its place. */
  readonly truncation?: Truncation | undefined;
}

/** How long a conversation may become before it is compacted. */
interface CompactionLimit {
  /** Absent: as long as the model's context window allows. */
  readonly tokens?: number | undefined;
  /**
   * The caller's name for it: one of its offers to an adapter of the same dialect, which then compacts by itself.
   * Absent: that offers something else, too.
   */
  readonly param?: string | undefined;
}

/** Drop what does not fit, or refuse it. */
export type Truncation = "auto" | "disabled";

/** Where the caller wrote a part, as a path in its request; undefined for a part not in this request. */
export type PathOf = (part: Part) => string | undefined;

/** Stands for a stored item, by its id. */
export interface Reference {
  readonly type: "reference";
  readonly id: string;
}

/** How the model is to answer. Absent: the adapter's own default. */
export interface Settings {
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  /** The names of the tools that may be called; absent: all. An adapter is offered only these. */
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
  /** How many answers to give; absent: one. The first is the turn's; nothing continues from the others. */
  readonly choices?: number | undefined;
  /** How many alternatives to report per token; 0 reports only the chosen one. */
  readonly topLogprobs?: number | undefined;
  readonly reasoningEffort?: string | undefined;
  readonly reasoningSummary?: string | undefined;
  readonly verbosity?: string | undefined;
  readonly serviceTier?: string | undefined;
  readonly native?: Native | undefined;
}

/** The caller's own fields, for an adapter of the same dialect, and which of them matter to any other. */
export interface Native extends Extra {
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
  | {
      readonly type: "function";
      readonly name: string;
      readonly description?: string | undefined;
      readonly parameters?: JsonSchema | undefined;
      readonly strict?: boolean | undefined;
      /** A search must find it before it may be called. */
      readonly deferred?: boolean | undefined;
    }
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
      /** Its name where several share its type: `mcp wiki`. Absent: its type. */
      readonly name?: string | undefined;
      /** The tools it stands for, if it is a group. */
      readonly group?: ToolGroup | undefined;
      /** The function that the model calls for it, if it is a tool search that the caller runs. */
      readonly search?: FunctionTool | undefined;
      readonly extra: Extra;
    };

export type FunctionTool = Extract<Tool, { type: "function" }>;

/** Tools with names of their own within the group. */
export interface ToolGroup {
  readonly name: string;
  readonly description?: string | undefined;
  readonly tools: readonly Tool[];
}

/** How a tool choice names a tool in a group. No wire allows blanks in a tool's name. */
export function nameInGroup(group: string, name: string): string {
  return `${group} ${name}`;
}

export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly name: string }
  | { readonly type: "other"; readonly extra: Extra };

export type Format =
  | { readonly type: "text" }
  | { readonly type: "json" }
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

/** A turn on its way, whose conversation may be shortened for the adapter that is asked. */
export interface RoutedTurn extends Turn {
  /** Absent: it is asked as it is. No adapter gets this. */
  readonly shortening?: Shortening | undefined;
}

/** What to ask of a conversation that may be too long for an adapter. */
export interface Shortening {
  /** Without what is beyond the adapter's window, if that is known, and what it has found too long before. */
  itemsFor(adapter: string, window: number | undefined): Promise<readonly Item[]>;
  /** What to ask instead of items that the adapter refused; undefined: nothing, so its refusal stands. */
  lessThan(items: readonly Item[], adapter: string, refusal: GatewayError): Promise<readonly Item[] | undefined>;
}

/** A request's trace context, across services. */
export interface Trace {
  readonly parent: string;
  readonly state: string | undefined;
}

/** A turn's result. */
export interface Answer extends Choice {
  readonly status: "completed" | "incomplete" | "failed" | "cancelled";
  /** The other answers, if several were requested. */
  readonly others?: readonly Choice[] | undefined;
  /** The index each item had when it was said, if others were deleted since; absent: its current one. */
  readonly places?: readonly number[] | undefined;
  readonly usage: Usage | undefined;
  readonly error: GatewayError | undefined;
  readonly notes: Notes;
  readonly endedAt: Date;
  /** The index of the item that was being said when the answer broke off. */
  readonly brokenOff: number | undefined;
  /** The pieces the items were cut into. */
  readonly pieces: Pieces | undefined;
}

/** One answer of several to the same question. */
export interface Choice {
  readonly finish: Finish;
  readonly items: readonly OutputItem[];
  /** What the dialect adds to its message, for the caller alone. */
  readonly extra?: Extra | undefined;
}

/** Why the model stopped. */
export type Finish = (typeof finishes)[number];

export const finishes = ["stop", "length", "content-filter", "tool-calls"] as const;

/** The model was cut off before it had said everything. */
export function isCutOff(finish: Finish): boolean {
  return finish === "length" || finish === "content-filter";
}

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
  /** Fields of its dialect that we have no word for, for the caller alone; the last value of each counts. */
  readonly extra?: Extra | undefined;
}
