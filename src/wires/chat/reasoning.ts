/** A model's reasoning on this wire: where servers have it in a message, and in which fields they sign it. */
import { isObject } from "../fields.ts";
import { listAt, type Said, textAt } from "../json.ts";

/** Tells reasoning from the answer: servers have it in a field of its own, in parts of the content, or in tags. */
export function createThoughtReader() {
  let isInTags = false;
  return (message: Said): { readonly thought: string; readonly text: string } => {
    const { content, reasoning_content, reasoning, reasoning_text } = message;
    const parts = Array.isArray(content) ? content.filter(isObject) : undefined;
    const text = typeof content === "string" ? content : (parts?.map(textOf).join("") ?? "");
    const told = reasoning_content || reasoning || reasoning_text || parts?.map(thoughtOf).join("");
    if (typeof told === "string") return { thought: told, text };
    // Of pieces in tags only those with thoughts are marked; the closing tag comes with the answer.
    const isMarked = isThought(message);
    if (!isMarked && !isInTags) return { thought: "", text };
    const end = text.indexOf(closing);
    isInTags = end === -1 && (isMarked || text === "");
    if (end === -1 && !isMarked) return { thought: "", text };
    const thought = (end === -1 ? text : text.slice(0, end)).replace(/^<thought>/, "");
    return { thought, text: end === -1 ? "" : text.slice(end + closing.length) };
  };
}

const closing = "</thought>";

/** Its content is marked as a thought. */
function isThought(message: Said): boolean {
  const { extra_content: marks } = message;
  return isObject(marks) && Object.values(marks).some((mark) => isObject(mark) && mark["thought"] === true);
}

const textOf = (part: Said): string => textAt(part, "text") ?? "";

/** Again in parts. */
function thoughtOf(part: Said): string {
  return textAt(part, "thinking") ?? (listAt(part, "thinking") ?? []).filter(isObject).map(textOf).join("");
}

/**
 * Fields in which servers sign a model's reasoning. Without them, models that call tools refuse to continue, or have
 * forgotten why they called. Nothing else is sent back: many servers reject even fields of their own answers.
 */
export function isSigning(key: string, value: unknown): boolean {
  if (key === "extra_content") return JSON.stringify(value).includes('"thought_signature"');
  return key === "reasoning_details" || key === "reasoning_opaque" || key === "thinking_blocks";
}

/**
 * Adds signing fields to those of a message, except to what is its `own`. They come a few words at a time, but only the
 * whole is signed: entries continue the last one of their list, and of anything else the last value counts.
 */
export function joinFields(message: object, added: Said, own: Said = {}): void {
  const fields = message as Record<string, unknown>;
  for (const [key, value] of Object.entries(added)) {
    if (Object.hasOwn(own, key)) continue;
    const before = fields[key];
    if (!Array.isArray(value)) fields[key] = value;
    else fields[key] = Array.isArray(before) ? joinEntries(before, value) : joinEntries([], value);
  }
}

function joinEntries(list: unknown[], pieces: readonly unknown[]): unknown[] {
  for (const piece of pieces) {
    const last = list.at(-1);
    if (isObject(last) && isObject(piece) && isContinued(last, piece)) list[list.length - 1] = joinEntry(last, piece);
    else list.push(piece);
  }
  return list;
}

/** The words that pieces continue, whichever server sends them. */
const words = ["text", "summary", "thinking"];

function isContinued(before: Said, piece: Said): boolean {
  if (before["type"] !== piece["type"] || before["index"] !== piece["index"] || before["signature"]) return false;
  return words.some((key) => typeof before[key] === "string") && !("data" in piece);
}

function joinEntry(before: Said, piece: Said): Said {
  const joined: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(piece)) {
    if (value === null || value === "") continue;
    joined[key] = words.includes(key) ? `${String(before[key] ?? "")}${String(value)}` : value;
  }
  return joined;
}
