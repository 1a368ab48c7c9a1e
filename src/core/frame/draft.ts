/** Items in the making: each accepts deltas, says what they add, and is finished once. */
import type { Delta } from "../delta.ts";
import type { ItemDelta, OutputItem } from "../event.ts";
import type { Annotation, Extra, Part } from "../item.ts";

export interface Draft {
  /** The item while it is still empty. */
  readonly skeleton: OutputItem;
  /** What the delta adds, if anything. */
  accept(delta: Delta): Omit<ItemDelta, "type" | "index"> | undefined;
  /** Of a call: whether it is complete. */
  isWhole?(): boolean;
  /** Of a call: what must be added if nothing more is said. */
  missing?(): string | undefined;
  finish(): OutputItem;
}

/** `known`: what its dialect adds, as far as known when it begins. */
export function beginMessage(known: Extra | undefined): Draft {
  const parts: { type: "text" | "refusal"; text: string; logprobs?: unknown[]; annotations?: Annotation[] }[] = [];
  let extra = known;
  return {
    skeleton: { type: "message", role: "assistant", content: [], ...(known !== undefined && { extra: known }) },
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
      return { type: "message", role: "assistant", content, ...(extra !== undefined && { extra }) };
    },
  };
}

export function beginReasoning(): Draft {
  const summary: string[] = [];
  let section: number | undefined;
  let text = "";
  let encrypted: string | undefined;
  return {
    skeleton: { type: "reasoning", summary: [], text: "" },
    accept(delta) {
      if (delta.type === "reasoning-seal") encrypted = delta.encrypted;
      if (delta.type !== "reasoning" || delta.text === "") return undefined;
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
    finish: () => ({ type: "reasoning", summary, text, ...(encrypted !== undefined && { encrypted }) }),
  };
}

export function beginCall(call: Extract<Delta, { type: "tool-call" }>, callId: string): Draft {
  const { name, group, kind = "function", extra } = call;
  const called = { type: "tool-call", kind, callId, name, ...(group !== undefined && { group }) } as const;
  // One map for all: a copy for each late field would keep a talkative upstream's turn busy for minutes.
  const added = new Map(Object.entries(extra?.fields ?? {}));
  let dialect = extra?.dialect;
  let written = "";
  return {
    skeleton: { ...called, arguments: "", ...(extra !== undefined && { extra }) },
    accept(delta) {
      if (delta.type === "tool-extra") {
        dialect = delta.extra.dialect;
        const entries = Object.entries(delta.extra.fields);
        const news = entries.filter(([key]) => !added.has(key));
        for (const [key, value] of entries) added.set(key, value);
        if (news.length === 0) return undefined;
        return { kind: "extra", part: 0, text: "", extra: { dialect, fields: Object.fromEntries(news) } };
      }
      if (delta.type !== "tool-arguments" || delta.text === "") return undefined;
      written += delta.text;
      return { kind: "arguments", part: 0, text: delta.text };
    },
    isWhole: () => kind !== "custom" && isJsonObject(written),
    // Clients parse the arguments, even of a call without any.
    missing: () => (kind !== "custom" && written.trim() === "" ? "{}" : undefined),
    finish() {
      const all = dialect && { dialect, fields: Object.fromEntries(added) };
      return { ...called, arguments: written, ...(all !== undefined && { extra: all }) };
    },
  };
}

/** An item that comes all at once. */
export function beginWhole(item: OutputItem): Draft {
  return { skeleton: item, accept: () => undefined, finish: () => item };
}

function isJsonObject(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
