/** What a conversation is made of: the same items go in, come out and are stored. */
import type { Extra, Settings, Tool } from "./settings.ts";

export type Item = Message | Reasoning | ToolCall | ToolOutput | Reference | Compaction | OtherItem;
export type Role = "system" | "developer" | "user" | "assistant";

export interface Message {
  readonly type: "message";
  readonly id?: string | undefined;
  readonly role: Role;
  readonly content: Content;
  readonly name?: string | undefined;
  /** Fields of the caller's dialect that we have no word for; an adapter of the same dialect passes them on. */
  readonly extra?: Extra | undefined;
}

/** A string is one text part, as most clients send it. */
export type Content = string | readonly Part[];

/** Where a part stood in its request, for errors about it: it is never written or stored. */
export const place: unique symbol = Symbol("place");

export type Part = AnyPart & { readonly [place]?: string | undefined };

type AnyPart =
  | TextPart
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

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly logprobs?: readonly unknown[] | undefined;
  readonly annotations?: readonly Annotation[] | undefined;
  readonly extra?: Extra | undefined;
}

/** A note on a text, such as a cited source. Both wires know the same types and fields, each in its own form. */
export interface Annotation {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Reasoning {
  readonly type: "reasoning";
  readonly id?: string | undefined;
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
  readonly id?: string | undefined;
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
  readonly id?: string | undefined;
  readonly kind: ToolKind;
  readonly callId: string;
  readonly output: Content;
  /** The tools a search found, offered from here on. */
  readonly tools?: readonly Tool[] | undefined;
  readonly extra?: Extra | undefined;
}

/** Stands for a stored item, by its id; the gateway puts the item in its place. */
export interface Reference {
  readonly type: "reference";
  readonly id: string;
}

/** Stands for everything said before it. */
export interface Compaction {
  readonly type: "compaction";
  readonly id?: string | undefined;
  /** In words; empty if only its maker can read it. */
  readonly summary: string;
  readonly encrypted?: string | undefined;
}

/** An item that only its own dialect knows, e.g. a hosted tool's call. Its type there is among its fields. */
export interface OtherItem {
  readonly type: "other";
  readonly id?: string | undefined;
  readonly extra: Extra;
  /** One half of a pair that the dialect has beside calls and outputs: both have the same id. */
  readonly exchange?: { readonly side: "model" | "tools"; readonly id: string } | undefined;
  /** Tools offered from here on. */
  readonly tools?: readonly Tool[] | undefined;
  /** Settings that apply from here on. */
  readonly updates?: Pick<Settings, "reasoningEffort" | "format"> | undefined;
  /** What it says, for a model whose wire does not know it. */
  readonly words?: string | undefined;
}

/** All text of a content, parts joined. */
export function textOf(content: Content): string {
  if (typeof content === "string") return content;
  let text = "";
  for (const part of content) if (part.type === "text" || part.type === "refusal") text += part.text;
  return text;
}

/** Whether it steers the model rather than belongs to the talk. */
export function isInstruction(item: Item): boolean {
  return item.type === "message" && (item.role === "system" || item.role === "developer");
}

/** Every public id carries its turn's key, so that an id alone finds its turn: `resp_KEY`, `msg_KEY_0`. */
export function keyOf(id: string): string {
  return /^[a-z]+[_-]([0-9a-f]+)/.exec(id)?.[1] ?? "";
}
