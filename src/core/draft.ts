/** An item in the making: it takes deltas, says what they add, and is ended once. */
import type { Delta, ItemDelta } from "./event.ts";
import { type Annotation, type Item } from "./item.ts";
import { type Extra, gather } from "./settings.ts";

export interface Draft {
  /** What is known when it begins: empty, unless it comes all at once. */
  readonly item: Item;
  /** What the delta adds, if a wire has to tell it. */
  add(delta: Delta): ItemDelta | undefined;
  /** Whether another item may follow. A function's arguments must be whole first; a custom tool's input has no syntax. */
  isComplete(): boolean;
  /** What is told though nobody said it: clients parse the arguments, even of a call without any. */
  fill?(): ItemDelta | undefined;
  end(whole: boolean): Item;
}

type Of<Type> = Extract<Item, { type: Type }>;

export function createDraft(item: Item, index: number): Draft {
  switch (item.type) {
    case "message":
      return draftMessage(item, index);
    case "reasoning":
      return draftReasoning(item, index);
    case "tool-call":
      return draftCall(item, index);
    default:
      return { item, add: () => undefined, isComplete: () => true, end: () => item };
  }
}

interface DraftPart {
  readonly type: "text" | "refusal";
  text: string;
  logprobs?: unknown[];
  annotations?: Annotation[];
}

function draftMessage(item: Of<"message">, index: number): Draft {
  const parts: DraftPart[] = [];
  let part: DraftPart | undefined;
  let { extra } = item;
  return {
    item,
    add(delta) {
      switch (delta.type) {
        case "text":
        case "refusal": {
          if (part?.type !== delta.type) parts.push((part = { type: delta.type, text: "" }));
          part.text += delta.text;
          const at = parts.length - 1;
          if (delta.type === "refusal" || delta.logprobs === undefined)
            return { type: "item-delta", index, kind: delta.type, part: at, text: delta.text };
          (part.logprobs ??= []).push(...delta.logprobs);
          return { type: "item-delta", index, kind: "text", part: at, text: delta.text, logprobs: delta.logprobs };
        }
        case "annotation": {
          if (part?.type !== "text") return undefined;
          const { annotation } = delta;
          (part.annotations ??= []).push(annotation);
          return { type: "item-delta", index, kind: "annotation", part: parts.length - 1, text: "", annotation };
        }
        case "message-end":
          if (delta.extra !== undefined) extra = gather(extra, delta.extra);
          return undefined;
        default:
          return undefined;
      }
    },
    isComplete: () => true,
    end() {
      const [only] = parts;
      const isPlain = parts.length === 1 && only?.type === "text" && !only.logprobs && !only.annotations;
      return { ...item, content: isPlain ? only.text : parts, ...(extra !== undefined && { extra }) };
    },
  };
}

function draftReasoning(item: Of<"reasoning">, index: number): Draft {
  const summary: string[] = [];
  let section: number | undefined;
  let text = "";
  let encrypted: string | undefined;
  let signed: Extra | undefined;
  return {
    item,
    add(delta) {
      if (delta.type === "reasoning-seal") encrypted = delta.encrypted;
      if (delta.type === "reasoning-extra") signed = gather(signed, delta.extra);
      if (delta.type !== "reasoning") return undefined;
      if (delta.summary === undefined) {
        text += delta.text;
        return { type: "item-delta", index, kind: "reasoning", part: 0, text: delta.text };
      }
      // An adapter may number its sections as it likes: a new number begins the next one.
      if (delta.summary !== section) summary.push("");
      section = delta.summary;
      const part = summary.length - 1;
      summary[part] += delta.text;
      return { type: "item-delta", index, kind: "summary", part, text: delta.text };
    },
    isComplete: () => true,
    end(whole) {
      // Signed is only the whole: servers refuse a part of it.
      const seals = { ...(encrypted !== undefined && { encrypted }), ...(whole && signed && { extra: signed }) };
      return { ...item, summary, text, ...seals };
    },
  };
}

function draftCall(item: Of<"tool-call">, index: number): Draft {
  let written = "";
  let { extra } = item;
  const json = followJson();
  function write(text: string): ItemDelta {
    written += text;
    if (item.kind !== "custom") json.read(text);
    return { type: "item-delta", index, kind: "arguments", part: 0, text };
  }

  return {
    item,
    add(delta) {
      if (delta.type === "tool-extra") {
        extra = gather(extra, delta.extra);
        return { type: "item-delta", index, kind: "extra", part: 0, text: "", extra: delta.extra };
      }
      return delta.type === "tool-arguments" && delta.text !== "" ? write(delta.text) : undefined;
    },
    fill: () => (item.kind !== "custom" && written.trim() === "" ? write("{}") : undefined),
    isComplete: () => item.kind === "custom" || json.isWhole(written),
    end: () => ({ ...item, arguments: written, ...(extra !== undefined && { extra }) }),
  };
}

/**
 * Follows a text while it grows, and says whether it is a whole JSON object or list, or `null`. It reads each character
 * once and parses the text once. Parsing it again for each piece would take seconds if a server interleaves long arguments.
 */
function followJson() {
  let depth = 0;
  let isInString = false;
  let isEscaped = false;
  /** The outermost bracket has been closed, and something other than blanks has followed it. */
  let isClosed = false;
  let isFollowed = false;
  let isValid: boolean | undefined;

  return {
    read(text: string): void {
      for (const character of text) {
        if (isEscaped) isEscaped = false;
        else if (isInString) {
          isEscaped = character === "\\";
          isInString = character !== '"';
        } else if (isClosed) isFollowed ||= character.trim() !== "";
        else if (character === '"') isInString = true;
        else if (character === "{" || character === "[") depth += 1;
        else if (character === "}" || character === "]") isClosed = --depth === 0;
      }
    },
    isWhole: (text: string): boolean => text === "null" || (isClosed && !isFollowed && (isValid ??= isJson(text))),
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
