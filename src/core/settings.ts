/** How a caller wants to be answered, and with which tools; and what a dialect adds that has no word here. */

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
  | (NamedTool & { readonly type: "custom"; readonly format?: unknown })
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

interface NamedTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** A search must find it before it may be called. */
  readonly deferred?: boolean | undefined;
}

export interface FunctionTool extends NamedTool {
  readonly type: "function";
  readonly parameters?: JsonSchema | undefined;
  readonly strict?: boolean | undefined;
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

/** What a dialect adds that we have no word for: opaque here, and given back only to whom it came from. */
export interface Extra {
  readonly dialect: Dialect;
  /** The server that made it, if others would refuse it. */
  readonly source?: string | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
}

export type Dialect = "chat" | "responses";

export function fieldsOf(extra: Extra | undefined, dialect: Dialect): Extra["fields"] | undefined {
  return extra?.dialect === dialect ? extra.fields : undefined;
}

/** Fields that come one after another: lists grow, and of anything else the last value counts. */
export function gather(before: Extra | undefined, { fields, ...from }: Extra): Extra {
  const gathered: Record<string, unknown> = { ...before?.fields };
  for (const [name, value] of Object.entries(fields)) {
    const list = gathered[name];
    gathered[name] = Array.isArray(list) && Array.isArray(value) ? [...list, ...value] : value;
  }
  return { ...from, fields: gathered };
}
