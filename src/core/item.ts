/** What a conversation is made of: the same items go in, come out and are stored. */
import type { Settings, Tool } from "./turn.ts";

export type Item = Message | Reasoning | ToolCall | ToolOutput | Compaction | OtherItem;

export type Role = "system" | "developer" | "user" | "assistant";

export interface Message {
  readonly type: "message";
  readonly role: Role;
  readonly content: Content;
  readonly name?: string | undefined;
  /** Fields of the caller's dialect that we have no word for; an adapter of the same dialect forwards them. */
  readonly extra?: Extra | undefined;
}

/** A string is one text part, as most clients send it. */
export type Content = string | readonly Part[];

export type Part =
  | {
      readonly type: "text";
      readonly text: string;
      readonly logprobs?: readonly unknown[] | undefined;
      readonly annotations?: readonly Annotation[] | undefined;
      readonly extra?: Extra | undefined;
    }
  | { readonly type: "refusal"; readonly text: string; readonly extra?: Extra | undefined }
  | {
      readonly type: "image";
      readonly url?: string | undefined;
      readonly fileId?: string | undefined;
      readonly detail?: string | undefined;
      readonly extra?: Extra | undefined;
    }
  | { readonly type: "audio"; readonly data: string; readonly format: string; readonly extra?: Extra | undefined }
  | {
      readonly type: "file";
      readonly fileId?: string | undefined;
      /** A data: URL or plain base64, as the caller sent it. */
      readonly data?: string | undefined;
      readonly url?: string | undefined;
      readonly name?: string | undefined;
      readonly extra?: Extra | undefined;
    }
  | { readonly type: "other"; readonly extra: Extra };

/** A note on a text, such as a cited source. Both wires know the same types and fields, each in its own form. */
export interface Annotation {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Reasoning {
  readonly type: "reasoning";
  /** The model's account of its reasoning, in sections. */
  readonly summary: readonly string[];
  /** The reasoning itself, if the adapter shows it. */
  readonly text: string;
  /** An opaque form that only its maker can read, for a later turn. */
  readonly encrypted?: string | undefined;
  /** Fields in which its dialect signs it, which the model that made it expects back. */
  readonly extra?: Extra | undefined;
}

/** A function takes JSON and a custom tool free text; a search is a function whose output brings tools along. */
export type ToolKind = "function" | "custom" | "search";

export interface ToolCall {
  readonly type: "tool-call";
  readonly kind: ToolKind;
  readonly callId: string;
  readonly name: string;
  /** The tool group in which it has that name. */
  readonly group?: string | undefined;
  /** JSON text of a function's arguments, or a custom tool's free input, exactly as the model wrote it. */
  readonly arguments: string;
  /** What its dialect adds, and the model that made the call expects back. */
  readonly extra?: Extra | undefined;
}

export interface ToolOutput {
  readonly type: "tool-output";
  readonly kind: ToolKind;
  readonly callId: string;
  readonly output: Content;
  /** The tools a search found, offered from here on. */
  readonly tools?: readonly Tool[] | undefined;
  /** What its dialect adds. */
  readonly extra?: Extra | undefined;
}

/** A compacted conversation: stands for everything said before it. */
export interface Compaction {
  readonly type: "compaction";
  /** In words; empty if only its maker can read it. */
  readonly summary: string;
  /** An opaque form that only its maker can read. */
  readonly encrypted?: string | undefined;
  /**
   * What stays word for word, because the answer in which the conversation was compacted still needed it. It comes with
   * the compaction, since clients may drop everything before that. Absent: what a caller shows before it is shown too.
   */
  readonly kept?: readonly Item[] | undefined;
}

/** An item that only its own dialect knows, e.g. a hosted tool's call. Its type there is among its fields. */
export interface OtherItem {
  readonly type: "other";
  readonly extra: Extra;
  readonly exchange?: Exchange | undefined;
  /** Tools offered from here on. */
  readonly tools?: readonly Tool[] | undefined;
  /** Settings that apply from here on, whatever requests say: clients leave theirs unchanged for the cache's sake. */
  readonly updates?: Pick<Settings, "reasoningEffort" | "format"> | undefined;
  /** What it says, for a model whose wire does not know it. */
  readonly words?: string | undefined;
  /** Like a developer message, it is not part of the talk. */
  readonly steers?: boolean | undefined;
}

/** The model asks the caller for something, or the caller provides it; both have the same id. */
export interface Exchange {
  readonly side: "model" | "tools";
  readonly id: string;
}

/** A tool's call and its output are such an exchange, and so is whatever else a dialect has of the kind. */
export function exchangeOf(item: Item): Exchange | undefined {
  if (item.type === "tool-call") return { side: "model", id: item.callId };
  if (item.type === "tool-output") return { side: "tools", id: item.callId };
  return item.type === "other" ? item.exchange : undefined;
}

/** The ids of such items of one side. */
export function exchangeIds(items: readonly Item[], side: Exchange["side"]): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const item of items) {
    const exchange = exchangeOf(item);
    if (exchange?.side === side) ids.add(exchange.id);
  }
  return ids;
}

export interface Extra {
  readonly dialect: Dialect;
  /** The server that made them, if others would refuse them. */
  readonly source?: string | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The wire dialects that opaque fields may be in. */
export type Dialect = "chat" | "responses";

/** The fields, if they are of this dialect. */
export function fieldsOf(extra: Extra | undefined, dialect: Dialect): Extra["fields"] | undefined {
  return extra?.dialect === dialect ? extra.fields : undefined;
}

/** The same, except those that the dialect writes itself. */
export function addedFields(extra: Extra | undefined, dialect: Dialect, written: ReadonlySet<string>): Extra["fields"] {
  const fields = Object.entries(fieldsOf(extra, dialect) ?? {});
  return Object.fromEntries(fields.filter(([key]) => !written.has(key)));
}

/** Its type in its own dialect. */
export function typeOf({ fields }: Extra): string {
  return typeof fields["type"] === "string" ? fields["type"] : "unknown";
}

/** All text of a content, parts joined. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  let text = "";
  for (const part of content) if (part.type === "text") text += part.text;
  return text;
}

/** About how many characters they have when written as JSON. Their texts are not searched for what JSON escapes. */
export function sizeOfItems(items: readonly Item[]): number {
  return sizeOfValue(items);
}

function sizeOfValue(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 4;
  let size = 2;
  if (Array.isArray(value)) for (const each of value) size += sizeOfValue(each) + 1;
  else for (const name in value) size += name.length + sizeOfValue(value[name as keyof typeof value]) + 4;
  return size;
}

/** Messages and other items that steer the model rather than belong to the talk. */
export function isSteering(item: Item): boolean {
  if (item.type === "other") return item.steers === true;
  return item.type === "message" && (item.role === "system" || item.role === "developer");
}

/**
 * Stands in for a deleted item, because the ids of later items encode their positions. It is the output of no call:
 * models are shown no halves that deletion left behind, and no caller can send an output without a call id.
 */
export const removed: Item = { type: "tool-output", kind: "function", callId: "", output: "" };

export function isRemoved(item: Item): boolean {
  return item.type === "tool-output" && item.callId === "";
}
