/** What a conversation is made of: the same items go in, come out and are stored. */
import type { Extra, Tool } from "./settings.ts";

export type Item = Message | Reasoning | ToolCall | ToolOutput | Reference | Compaction | OtherItem;
export type Role = "system" | "developer" | "user" | "assistant";

interface Base {
  readonly id?: string | undefined;
  /** What its dialect adds that we have no word for. The model that made it may expect it back. */
  readonly extra?: Extra | undefined;
}

export interface Message extends Base {
  readonly type: "message";
  readonly role: Role;
  readonly content: Content;
  readonly name?: string | undefined;
}

/** A string is one text part, as most clients send it. */
export type Content = string | readonly Part[];

/** Where a part stood in its request, for errors about it: it is never written or stored. */
export const place: unique symbol = Symbol("place");

export type Part = AnyPart & { readonly [place]?: string | undefined; readonly extra?: Extra | undefined };

type AnyPart =
  | TextPart
  | { readonly type: "refusal"; readonly text: string }
  | {
      readonly type: "image";
      readonly url?: string | undefined;
      readonly fileId?: string | undefined;
      readonly detail?: string | undefined;
    }
  | { readonly type: "audio"; readonly data: string; readonly format: string }
  | {
      readonly type: "file";
      readonly fileId?: string | undefined;
      /** A data: URL or plain base64, as the caller sent it. */
      readonly data?: string | undefined;
      readonly url?: string | undefined;
      readonly name?: string | undefined;
    }
  | { readonly type: "other"; readonly extra: Extra };

export interface TextPart {
  readonly type: "text";
  readonly text: string;
  readonly logprobs?: readonly unknown[] | undefined;
  readonly annotations?: readonly Annotation[] | undefined;
}

/** A note on a text, such as a cited source. Both wires know the same types and fields, each in its own form. */
export interface Annotation {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Reasoning extends Base {
  readonly type: "reasoning";
  /** The model's account of its reasoning, in sections. */
  readonly summary: readonly string[];
  /** The reasoning itself, if the adapter shows it. */
  readonly text: string;
  /** An opaque form that only its maker can read, for a later turn. */
  readonly encrypted?: string | undefined;
}

/** A function takes JSON and a custom tool free text; a search is a function whose output brings tools along. */
export type ToolKind = "function" | "custom" | "search";

export interface ToolCall extends Base {
  readonly type: "tool-call";
  readonly kind: ToolKind;
  readonly callId: string;
  readonly name: string;
  /** The tool group in which it has that name. */
  readonly group?: string | undefined;
  /** JSON text of a function's arguments, or a custom tool's free input, exactly as the model wrote it. */
  readonly arguments: string;
}

export interface ToolOutput extends Base {
  readonly type: "tool-output";
  readonly kind: ToolKind;
  readonly callId: string;
  readonly output: Content;
  /** The tools a search found, offered from here on. */
  readonly tools?: readonly Tool[] | undefined;
}

/** Stands for a stored item, by its id; the gateway puts the item in its place. */
interface Reference {
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
export interface OtherItem extends Base {
  readonly type: "other";
  readonly extra: Extra;
  /** One half of a pair that the dialect has beside calls and outputs: both have the same id. */
  readonly exchange?: { readonly side: "model" | "tools"; readonly id: string } | undefined;
  /** Tools offered from here on. */
  readonly tools?: readonly Tool[] | undefined;
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

/** Of an item that a caller sent: of its turn and its place. */
export function inputId({ type }: Item, key: string, index: number): string {
  return `${prefixes[type]}_${key}_i${index}`;
}

const prefixes: Record<Item["type"], string> = {
  message: "msg",
  reasoning: "rs",
  "tool-call": "fc",
  "tool-output": "fco",
  reference: "ref",
  compaction: "cmp",
  other: "item",
};
