/** Fields in which servers sign a model's reasoning: read apart from its words, and sent back with them. */
import { isObject, type Said } from "../fields.ts";

/**
 * Without them, models that call tools refuse to continue, or have forgotten why they called. Nothing else is sent back:
 * many servers reject even fields of their own answers.
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
    fields[key] = Array.isArray(value) ? joinEntries(Array.isArray(before) ? before : [], value) : value;
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
  return words.some((key) => typeof before[key] === "string");
}

function joinEntry(before: Said, piece: Said): Said {
  const joined: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(piece)) {
    if (value === null || value === "") continue;
    joined[key] = words.includes(key) ? `${String(before[key] ?? "")}${String(value)}` : value;
  }
  return joined;
}
