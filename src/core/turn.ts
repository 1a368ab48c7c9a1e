/** Ask → Turn → Answer: what the caller wants, what the adapter gets, what came of it. */
import type { GatewayError } from "./errors.ts";
import type { OutputItem } from "./event.ts";
import type { Extra, Item, Part } from "./item.ts";
import type { Pieces } from "./frame/pieces.ts";

/** What a caller wants, in no wire's dialect. Its items may name others that are kept, until they are looked up. */
export interface Ask<Asked = Item | Reference> {
  readonly model: string;
  /** What the caller sent: only what is new, or its whole history. */
  readonly items: readonly Asked[];
  /** The caller's word for these items, for errors that speak of them. */
  readonly itemsParam: string;
  /** A call among them that has no output is refused, even where they continue nothing; absent: its model is the judge. */
  readonly needsOutputs?: boolean | undefined;
  /** The caller's word for its tools; absent: `tools`. */
  readonly toolsParam?: string | undefined;
  /** For errors that speak of a part; absent: nobody knows more than `itemsParam`. */
  readonly pathOf?: PathOf | undefined;
  readonly settings: Settings;
  /** The caller wants the answer piece by piece. */
  readonly stream: boolean;
  /** The response that this request continues. */
  readonly previousId?: string | undefined;
  /** The conversation that this request continues. */
  readonly conversationId?: string | undefined;
  /** The caller's name for whom it speaks; a session hint. */
  readonly user?: string | undefined;
  /** `in-session`: only when a session is found or made by a hint. */
  readonly keep: "yes" | "no" | "in-session";
  /** The turn shall go on without its caller, who comes back for it. */
  readonly background?: boolean | undefined;
  /** The conversation shall be made short: its summary is the whole answer. */
  readonly compacts?: boolean | undefined;
  /** What to do with a conversation that is longer than the model's context window; absent: as its place demands. */
  readonly truncation?: Truncation | undefined;
}

/** What does not fit goes, or is refused. */
export type Truncation = "auto" | "disabled";

/** Where the caller wrote a part, in the words of its request; nothing for a part that is not of this request. */
export type PathOf = (part: Part) => string | undefined;

/** Stands for an item that is kept, by its id. */
export interface Reference {
  readonly type: "reference";
  readonly id: string;
}

/** How the model shall answer. Absent means the adapter's own default. */
export interface Settings {
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice | undefined;
  readonly parallelToolCalls?: boolean | undefined;
  readonly format?: Format | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly seed?: number | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly maxOutputTokens?: number | undefined;
  /** How many answers to give; absent: one. The first is the turn's, and nothing goes on from the others. */
  readonly choices?: number | undefined;
  /** How many alternatives to tell for each token; 0 tells the chosen one only. */
  readonly topLogprobs?: number | undefined;
  readonly reasoningEffort?: string | undefined;
  readonly reasoningSummary?: string | undefined;
  readonly verbosity?: string | undefined;
  readonly serviceTier?: string | undefined;
  readonly native?: Native | undefined;
}

/** The caller's own fields, for an adapter that speaks the same dialect, and what of them counts for any other. */
export interface Native extends Extra {
  /** Without these the answer would be another one. */
  readonly demands?: readonly Demand[] | undefined;
  /** Fields that the answer does not hang on. */
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
      /** A search has to find it before it may be called. */
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
      /** What it goes by where several have its type: `mcp wiki`. Absent: its type. */
      readonly name?: string | undefined;
      /** The tools that it stands for, where it is a group of them. */
      readonly group?: ToolGroup | undefined;
      /** The function that the model calls for it, where it is a search for tools that the caller makes. */
      readonly search?: FunctionTool | undefined;
      readonly extra: Extra;
    };

export type FunctionTool = Extract<Tool, { type: "function" }>;

/** Tools that are called by their own names within the group's. */
export interface ToolGroup {
  readonly name: string;
  readonly description?: string | undefined;
  readonly tools: readonly Tool[];
}

/** How a choice names a tool in a group. No tool of any wire has a blank in its name. */
export function nameInGroup(group: string, name: string): string {
  return `${group} ${name}`;
}

export type ToolChoice =
  | { readonly type: "auto" | "none" | "required" }
  | { readonly type: "tool"; readonly name: string }
  | { readonly type: "allowed"; readonly mode: "auto" | "required"; readonly names: readonly string[] }
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
  /** The trace that its caller follows it by, to be passed on. */
  readonly trace?: Trace | undefined;
  readonly model: string;
  readonly items: readonly Item[];
  readonly settings: Settings;
  readonly stream: boolean;
}

/** What a request is called by who follows it through several services. */
export interface Trace {
  readonly parent: string;
  readonly state: string | undefined;
}

/** What came of a turn. */
export interface Answer extends Choice {
  readonly status: "completed" | "incomplete" | "failed" | "cancelled";
  /** What else was answered, where several answers were asked for. */
  readonly others?: readonly Choice[] | undefined;
  /** The index that each item had when it was said, where others were deleted since; absent: the one it has now. */
  readonly places?: readonly number[] | undefined;
  readonly usage: Usage | undefined;
  readonly error: GatewayError | undefined;
  readonly notes: Notes;
  readonly endedAt: Date;
  /** The index of the item that was being said when the answer broke off. */
  readonly brokenOff: number | undefined;
  /** Into which pieces the items were cut. */
  readonly pieces: Pieces | undefined;
}

/** One answer of several to the same question. */
export interface Choice {
  readonly finish: Finish;
  readonly items: readonly OutputItem[];
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
  /** How many of the input were put into a cache; absent: nobody tells of any. */
  readonly cacheWriteTokens?: number | undefined;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** What the adapter let fall about itself and both wires have a field for. */
export interface Notes {
  readonly fingerprint?: string | undefined;
  readonly serviceTier?: string | undefined;
}
