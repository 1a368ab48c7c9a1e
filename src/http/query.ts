/** Query parameters of lists: which page of what is wanted; and such a page of items as both wires write it. */
import type { IncomingMessage } from "node:http";
import { GatewayError } from "../core/errors.ts";
import type { Item } from "../core/item.ts";
import type { ItemsWanted, Page } from "../core/store.ts";
import { type Fields, invalid, readChoice, readInteger, readString, unsupported } from "../wires/fields.ts";
import { shownIdOf, toKeptId, writeItem } from "../wires/responses/index.ts";
import type { Seal } from "../wires/wire.ts";
import { toQuery } from "./router.ts";

/** As fields of a body are read: a limit is a number. */
function toFields(query: URLSearchParams): Fields {
  const { limit, ...others } = Object.fromEntries(query);
  const isNumber = limit !== undefined && /^-?\d+$/.test(limit);
  return { key: "", values: { ...others, limit: isNumber ? Number(limit) : limit } };
}

/** Newest first by default. */
export function readItemsWanted(query: URLSearchParams): ItemsWanted {
  const fields = toFields(query);
  const after = readString(fields, "after");
  return {
    order: readChoice(fields, "order", ["asc", "desc"]) ?? "desc",
    after: after && toKeptId(after),
    limit: readInteger(fields, "limit", 1, 100) ?? 20,
  };
}

/** Of the operator: unknown names are refused, since what a misspelled filter should exclude would be deleted with the rest. */
export function readFilter({ url }: IncomingMessage, known: readonly string[]): Fields {
  const query = toQuery(url);
  for (const name of query.keys()) {
    if (!known.includes(name)) unsupported(name, `Those accepted here: ${known.join(", ") || "none"}.`);
    if (query.getAll(name).length > 1) invalid(name, `Invalid '${name}': it may be given only once.`);
  }
  return toFields(query);
}

/** The parameters of a hint. */
export const hintNames = ["user", "hint", "owner"];

/** The hint of `user=ann` or `hint=header:X-Session-Id=garden`. */
export function readHintOf(fields: Fields): string | undefined {
  checkExclusive(fields, "user", "hint");
  const user = readString(fields, "user");
  const written = readString(fields, "hint") ?? (user && `user=${user}`);
  if (written === undefined) return undefined;
  const [, kind, value] = /^(user|header:[^=\s]+)=(.+)$/s.exec(written) ?? [];
  if (kind === undefined) invalid("hint", "Invalid 'hint': expected e.g. header:X-Session-Id=garden or user=ann.");
  return `${kind.toLowerCase()}:${value}`;
}

export function checkExclusive({ values }: Fields, param: string, other: string): void {
  if (values[param] === undefined || values[other] === undefined) return;
  const message = `'${param}' and '${other}' cannot be used together.`;
  throw new GatewayError("mutually_exclusive", message, { param });
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
