/** Items in the making: each accepts deltas, says what they add, and is finished once. */
import type { Delta } from "../delta.ts";
import { gatherFields } from "../fields.ts";
import type { ItemDelta, OutputItem } from "../event.ts";
import type { Annotation, Extra, Part } from "../item.ts";
import { isExcessive } from "../json-shape.ts";

export interface Draft {
  /** What the delta adds, if anything. */
  accept(delta: Delta): Added | undefined;
  /** Of a call: whether it is complete. */
  isWhole?(): boolean;
  /** Of a call that is not broken off: adds what must not be missing if nothing more is said. */
  complete?(): Added | undefined;
  /** `whole`: it is not broken off. */
  finish(whole: boolean): OutputItem;
}

/** An event of the item, but for its place in the answer. */
export type Added = Omit<ItemDelta, "type" | "index">;

/** `skeleton`: the item as far as known when it begins, still without content unless it comes all at once. */
export function beginDraft(skeleton: OutputItem): Draft {
  switch (skeleton.type) {
    case "message":
      return beginMessage(skeleton);
    case "reasoning":
      return beginReasoning(skeleton);
    case "tool-call":
      return beginCall(skeleton);
    case "compaction":
    case "other":
      return { accept: () => undefined, finish: () => skeleton };
  }
}

/** A message before its first word; `extra`: what its dialect adds, if already known. */
export function emptyMessage(extra: Extra | undefined): OutputItem {
  return { type: "message", role: "assistant", content: [], ...(extra !== undefined && { extra }) };
}

export function emptyReasoning(): OutputItem {
  return { type: "reasoning", summary: [], text: "" };
}

function beginMessage(skeleton: Skeleton<"message">): Draft {
  const parts: { type: "text" | "refusal"; text: string; logprobs?: unknown[]; annotations?: Annotation[] }[] = [];
  let { extra } = skeleton;
  return {
    accept(delta) {
      if (delta.type === "message-end") extra ??= delta.extra;
      let part = parts.at(-1);
      if (delta.type === "annotation" && part?.type === "text") {
        (part.annotations ??= []).push(delta.annotation);
        return { kind: "annotation", part: parts.length - 1, text: "", annotation: delta.annotation };
      }
      if (delta.type !== "text" && delta.type !== "refusal") return undefined;
      if (part?.type !== delta.type) parts.push((part = { type: delta.type, text: "" }));
      part.text += delta.text;
      const logprobs = delta.type === "text" ? delta.logprobs : undefined;
      for (const entry of logprobs ?? []) (part.logprobs ??= []).push(entry);
      return { kind: delta.type, part: parts.length - 1, text: delta.text, logprobs };
    },
    finish() {
      const only = parts.length === 1 ? parts[0] : undefined;
      const plain = only?.type === "text" && only.logprobs === undefined && only.annotations === undefined;
      const content = plain ? only.text : (parts satisfies readonly Part[]);
      return { ...skeleton, content, ...(extra !== undefined && { extra }) };
    },
  };
}

function beginReasoning(skeleton: Skeleton<"reasoning">): Draft {
  const summary: string[] = [];
  let section: number | undefined;
  let text = "";
  let encrypted: string | undefined;
  const signed = gatherFields();
  return {
    accept(delta) {
      if (delta.type === "reasoning-seal") encrypted = delta.encrypted;
      if (delta.type === "reasoning-extra") signed.add(delta.extra);
      if (delta.type !== "reasoning") return undefined;
      if (delta.summary === undefined) {
        text += delta.text;
        return { kind: "reasoning", part: 0, text: delta.text };
      }
      // An adapter may number its sections as it likes: a new number begins the next one.
      if (delta.summary !== section) summary.push("");
      section = delta.summary;
      const part = summary.length - 1;
      summary[part] += delta.text;
      return { kind: "summary", part, text: delta.text };
    },
    finish(whole) {
      // Signed is only the whole: servers refuse a part of it.
      const extra = whole ? signed.toExtra() : undefined;
      const sealed = { ...(encrypted !== undefined && { encrypted }), ...(extra !== undefined && { extra }) };
      return { ...skeleton, summary, text, ...sealed };
    },
  };
}

function beginCall({ extra, ...skeleton }: Skeleton<"tool-call">): Draft {
  // One map for all: a copy for each late field would keep a talkative upstream's turn busy for minutes.
  const added = new Map(Object.entries(extra?.fields ?? {}));
  let dialect = extra?.dialect;
  let written = "";
  const isJson = skeleton.kind !== "custom";

  function write(text: string): Added {
    written += text;
    return { kind: "arguments", part: 0, text };
  }

  return {
    accept(delta) {
      if (delta.type === "tool-extra") {
        dialect = delta.extra.dialect;
        const entries = Object.entries(delta.extra.fields);
        const news = entries.filter(([key]) => !added.has(key));
        for (const [key, value] of entries) added.set(key, value);
        if (news.length === 0) return undefined;
        return { kind: "extra", part: 0, text: "", extra: { dialect, fields: Object.fromEntries(news) } };
      }
      return delta.type === "tool-arguments" && delta.text !== "" ? write(delta.text) : undefined;
    },
    isWhole: () => isJson && isJsonObject(written),
    // Clients parse the arguments, even of a call without any.
    complete: () => (isJson && written.trim() === "" ? write("{}") : undefined),
    finish() {
      const all = dialect && { dialect, fields: Object.fromEntries(added) };
      return { ...skeleton, arguments: written, ...(all !== undefined && { extra: all }) };
    },
  };
}

type Skeleton<Type> = Extract<OutputItem, { type: Type }>;

function isJsonObject(text: string): boolean {
  if (isExcessive(text)) return false;
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
