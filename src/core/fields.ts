/** Puts together the fields that a dialect adds to something, if they come piece by piece. */
import type { Extra } from "./item.ts";

type Fields = Extra["fields"];

export interface GatheredFields {
  add(extra: Extra): void;
  /** Undefined if nothing was added. */
  toExtra(): Extra | undefined;
}

/** Lists grow, and of anything else the last value counts. `continues`: what is in the lists comes in pieces too. */
export function gatherFields(continues: boolean): GatheredFields {
  const values = new Map<string, unknown>();
  const lists = new Map<string, ListGathering>();
  let origin: Omit<Extra, "fields"> | undefined;

  return {
    add({ fields, ...from }) {
      origin = from;
      for (const [key, value] of Object.entries(fields)) {
        if (!Array.isArray(value)) values.set(key, value);
        else {
          let list = lists.get(key);
          if (list === undefined) lists.set(key, (list = gatherList(continues)));
          list.add(value);
          values.set(key, list.entries);
        }
      }
    },
    toExtra: () => origin && { ...origin, fields: Object.fromEntries(values) },
  };
}

interface ListGathering {
  readonly entries: readonly unknown[];
  add(entries: readonly unknown[]): void;
}

/** Reasoning comes a few words at a time, and its signature last: signed is only the whole. */
function gatherList(continues: boolean): ListGathering {
  const entries: unknown[] = [];
  /** Where entries with an index are. */
  const places = new Map<string, number>();

  function accept(entry: unknown, lastPlace: number): void {
    const isIndexed = isFields(entry) && typeof entry["index"] === "number";
    const name = isIndexed ? `${String(entry["type"])} ${entry["index"]}` : "";
    const place = isIndexed ? places.get(name) : lastPlace;
    const before = place === undefined || !continues ? undefined : entries[place];
    if (place !== undefined && isFields(before) && isFields(entry) && isContinued(before, entry)) {
      entries[place] = join(before, entry);
      return;
    }
    if (isIndexed) places.set(name, entries.length);
    entries.push(entry);
  }

  return {
    entries,
    add(more) {
      // Without an index, only what came with another piece may be continued.
      const last = entries.length - 1;
      for (const entry of more) accept(entry, last);
    },
  };
}

/** What a piece continues, whichever server sends it. */
const words = ["text", "summary", "thinking"] as const;

function isContinued(before: Fields, entry: Fields): boolean {
  if (before["type"] !== entry["type"] || before["index"] !== entry["index"] || before["signature"]) return false;
  return words.some((key) => typeof before[key] === "string") && !("data" in entry);
}

function join(before: Fields, entry: Fields): Fields {
  const joined: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(entry)) {
    if (value === null || value === "") continue;
    const said = words.some((word) => word === key) ? before[key] : undefined;
    // Some servers repeat all words with the signature.
    const isRepeated = typeof said === "string" && String(value).startsWith(said) && Boolean(entry["signature"]);
    joined[key] = typeof said === "string" && !isRepeated ? said + String(value) : value;
  }
  return joined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
