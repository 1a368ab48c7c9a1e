/**
 * Puts together what signs a model's reasoning, as it is read and as it is sent back: it comes a few words at a time, but
 * only the whole is signed.
 */
import { type JsonObject, isObject } from "../../json.ts";

export interface SignedFields {
  add(fields: JsonObject): void;
  toFields(): JsonObject;
}

/** What is in lists is continued by what comes later, and of anything else the last value counts. */
export function gatherPieces(): SignedFields {
  const values = new Map<string, unknown>();
  /** Where the newest entry of each list, type and index is. */
  const places = new Map<string, number>();

  /** Without an index, a piece continues the last entry that came before its list. */
  function append(key: string, list: unknown[], pieces: readonly unknown[]): void {
    const last = list.length - 1;
    for (const piece of pieces) {
      const { type, index }: JsonObject = isObject(piece) ? piece : {};
      const name = JSON.stringify([key, type, index]);
      const place = typeof index === "number" ? (places.get(name) ?? -1) : last;
      const before = list[place];
      if (isObject(before) && isObject(piece) && isContinued(before, piece)) list[place] = join(before, piece);
      else places.set(name, list.push(piece) - 1);
    }
  }

  return {
    add(fields) {
      for (const [key, value] of Object.entries(fields)) {
        const known = values.get(key);
        const list: unknown[] = Array.isArray(known) ? known : [];
        if (Array.isArray(value)) append(key, list, value);
        values.set(key, Array.isArray(value) ? list : value);
      }
    },
    toFields: () => Object.fromEntries(values),
  };
}

/** The words that pieces continue, whichever server sends them. */
const words = ["text", "summary", "thinking"] as const;

function isContinued(before: JsonObject, piece: JsonObject): boolean {
  if (before["type"] !== piece["type"] || before["index"] !== piece["index"] || before["signature"]) return false;
  return words.some((key) => typeof before[key] === "string") && !("data" in piece);
}

function join(before: JsonObject, piece: JsonObject): JsonObject {
  const joined: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(piece)) {
    if (value === null || value === "") continue;
    const said = words.some((word) => word === key) ? before[key] : undefined;
    // Some servers repeat all words with the signature.
    const isRepeated = typeof said === "string" && String(value).startsWith(said) && Boolean(piece["signature"]);
    joined[key] = typeof said === "string" && !isRepeated ? said + String(value) : value;
  }
  return joined;
}
