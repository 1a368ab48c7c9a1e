/** Lists items a page at a time: those of a conversation, or the input of a response. */
import { toAddress } from "../../core/conversation/address.ts";
import type { ItemPlace } from "../../core/conversation/conversations.ts";
import { GatewayError } from "../../core/errors.ts";
import { readChoice, readInteger, readString } from "../fields.ts";
import { toPrefix, toWireItem } from "./output.ts";
import type { Seal, Sealing } from "./seal.ts";
import { toSections } from "./summary.ts";

/** Which items a caller wants, and how. */
export interface PageQuery {
  readonly order: "asc" | "desc";
  /** The previous page's last item; it may have been deleted since. */
  readonly after: string | undefined;
  readonly limit: number;
  /** With sealed reasoning. */
  readonly showsSeals: boolean;
}

type Query = Readonly<Record<string, unknown>>;

const defaultLimit = 20;
const maxLimit = 100;

/** Newest first by default. */
export function readPageQuery(query: Query): PageQuery {
  const { limit } = query;
  const isNumber = typeof limit === "string" && /^-?\d+$/.test(limit);
  const fields = { key: "", values: { ...query, limit: isNumber ? Number(limit) : limit } };
  return {
    order: readChoice(fields, "order", ["asc", "desc"]) ?? "desc",
    after: readString(fields, "after"),
    limit: readInteger(fields, "limit", 1, maxLimit) ?? defaultLimit,
    showsSeals: showsSeals(query),
  };
}

/** Clients write a list as `include`, `include[]` or `include[0]`; other values are ignored. */
export function showsSeals(query: Query): boolean {
  return Object.entries(query).some(
    ([key, value]) => /^include(\[\d*\])?$/.test(key) && [value].flat().includes("reasoning.encrypted_content"),
  );
}

/** One page of items, given oldest first. `summarises`: reasoning without a summary is presented as one. */
export function toItemPage(places: readonly ItemPlace[], query: PageQuery, seal: Seal, summarises = false): object {
  const { order, after, limit, showsSeals } = query;
  const ordered = order === "asc" ? places : places.toReversed();
  const start = after === undefined ? 0 : findCursor(ordered, after) + 1;
  const rest = ordered.slice(start).filter(({ item }) => item !== undefined);
  const page = takePage(rest, limit);
  return toItemList(page, { seal, showsSeals }, rest.length > page.length, summarises);
}

/** Each item may be as long as a body, and a hundred of them longer than any text can be. */
const maxPageCharacters = 32 * 1024 * 1024;

/** The first items, fewer if they are long, but at least one. */
function takePage(places: readonly ItemPlace[], limit: number): readonly ItemPlace[] {
  const most = places.slice(0, limit);
  let characters = 0;
  const end = most.findIndex(({ item }, index) => {
    characters += JSON.stringify(item).length;
    return index > 0 && characters > maxPageCharacters;
  });
  return end === -1 ? most : most.slice(0, end);
}

/** The items in the given order. */
export function toItemList(
  places: readonly ItemPlace[],
  sealing: Sealing,
  hasMore = false,
  summarises = false,
): object {
  const [first, last] = [places[0], places.at(-1)];
  return {
    object: "list",
    data: places.map((place) => toListedItem(place, sealing, summarises)),
    // Strings even if the list is empty: the wire has no null here.
    first_id: (first && toListedId(first)) ?? "",
    last_id: (last && toListedId(last)) ?? "",
    has_more: hasMore,
  };
}

/** The place of the item listed under this id. */
export function findListed(places: readonly ItemPlace[], itemId: string): ItemPlace {
  return places.find((place) => toListedId(place) === itemId) ?? unknownItem(itemId);
}

export function unknownItem(itemId: string, param?: string): never {
  throw new GatewayError("not_found", `Item with id '${itemId}' not found.`, { param });
}

/** An item with its id, as every list shows it. */
export function toListedItem(place: ItemPlace, sealing: Sealing, summarises = false): object | undefined {
  const { item, isWhole } = place;
  const id = toListedId(place);
  if (item === undefined || id === undefined) return undefined;
  const isSummarised = summarises && item.type === "reasoning" && item.summary.length === 0;
  return toWireItem(
    item,
    id,
    isWhole ? "completed" : "incomplete",
    sealing,
    isSummarised ? toSections(item) : undefined,
  );
}

function toListedId(place: ItemPlace): string | undefined {
  return place.item && `${toPrefix(place.item)}_${toAddress(place)}`;
}

/** A deleted item's kind is no longer known, but its place is. */
function findCursor(places: readonly ItemPlace[], after: string): number {
  const address = after.slice(after.lastIndexOf("_") + 1);
  const found = places.findIndex((place) => toAddress(place) === address);
  return found === -1 ? unknownItem(after, "after") : found;
}
