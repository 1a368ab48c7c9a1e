/** Lists of items, a page at a time: those of a conversation, and the input of a response. */
import { GatewayError } from "../core/errors.ts";
import type { Item } from "../core/item.ts";
import type { ItemsWanted, Page } from "../core/store.ts";
import { readChoice, readInteger, readString } from "../wires/fields.ts";
import { shownIdOf, toKeptId, writeItem } from "../wires/responses/index.ts";
import type { Seal } from "../wires/wire.ts";

const usualLimit = 20;
const maxLimit = 100;

/** Newest first by default. */
export function readItemsWanted(query: URLSearchParams): ItemsWanted {
  const { limit, ...others } = Object.fromEntries(query);
  const isNumber = limit !== undefined && /^-?\d+$/.test(limit);
  const fields = { key: "", values: { ...others, limit: isNumber ? Number(limit) : limit } };
  const after = readString(fields, "after");
  return {
    order: readChoice(fields, "order", ["asc", "desc"]) ?? "desc",
    after: after && toKeptId(after),
    limit: readInteger(fields, "limit", 1, maxLimit) ?? usualLimit,
  };
}

/** Clients write a list as `include`, `include[]` or `include[0]`; other values are ignored. */
export function showsSeals(query: URLSearchParams): boolean {
  return [...query].some(([key, value]) => /^include(\[\d*\])?$/.test(key) && value === "reasoning.encrypted_content");
}

/** One page of a list that is at hand, oldest first. */
export function toPage(items: readonly Item[], { order, after, limit }: ItemsWanted): Page<Item> {
  const ordered = order === "asc" ? items : items.toReversed();
  const at = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && at === 0) throw unknownItem(after, "after");
  const entries = ordered.slice(at, at + limit);
  return { entries, hasMore: at + limit < ordered.length };
}

export function writeList({ entries, hasMore }: Page<Item>, seal: Seal, hasSeals: boolean): string {
  const data = entries.map((item) => writeItem(item, seal, hasSeals));
  const [first, last] = [entries[0], entries.at(-1)];
  // Strings even if the list is empty: the wire has no null here.
  const ends = { first_id: first ? shownIdOf(first) : "", last_id: last ? shownIdOf(last) : "" };
  return `{"object":"list","data":[${data.join(",")}],${JSON.stringify({ ...ends, has_more: hasMore }).slice(1)}`;
}

export function unknownItem(id: string, param?: string): GatewayError {
  return new GatewayError("not_found", `Item with id '${id}' not found.`, { param });
}
