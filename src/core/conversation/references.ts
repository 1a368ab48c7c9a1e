/** Looks up the items that a request refers to. */
import { readAddress } from "./address.ts";
import { GatewayError } from "../errors.ts";
import { type Item, isRemoved } from "../item.ts";
import type { SessionStore, StoredTurn } from "../store.ts";
import type { Ask, Reference } from "../turn.ts";

/**
 * The same request with every reference replaced by its item, which must be the owner's. A few bytes may refer to a
 * long item many times, so together they may not be longer than a body could be.
 */
export async function resolveReferences<Asked extends Pick<Ask, "items" | "itemsParam">>(
  store: Pick<SessionStore, "findTurn">,
  owner: string,
  ask: Asked,
  maxReferencedCharacters: number,
): Promise<Asked & { readonly items: readonly Item[] }> {
  if (hasNoReference(ask)) return ask;
  const turns = new Map<string, Promise<StoredTurn | undefined>>();
  const find = (turnId: string): Promise<StoredTurn | undefined> => {
    const known = turns.get(turnId) ?? store.findTurn(owner, turnId);
    turns.set(turnId, known);
    return known;
  };
  const sizes = new Map<Item, number>();
  const items: Item[] = [];
  let characters = 0;
  for (const [index, asked] of ask.items.entries()) {
    const item = isReference(asked) ? await lookUp(find, asked.id, `${ask.itemsParam}[${index}]`) : asked;
    items.push(item);
    if (item === asked) continue;
    const size = sizes.get(item) ?? JSON.stringify(item).length;
    sizes.set(item, size);
    characters += size;
    if (characters > maxReferencedCharacters) throw tooMuch(maxReferencedCharacters, ask.itemsParam);
  }
  return { ...ask, items };
}

function tooMuch(maxCharacters: number, param: string): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The items that '${param}' refers to have more than ${maxCharacters} characters in total (gateway.http.limits.max_body_bytes). Refer to fewer of them.`,
    { param },
  );
}

function hasNoReference<Asked extends Pick<Ask, "items">>(
  ask: Asked,
): ask is Asked & { readonly items: readonly Item[] } {
  return !ask.items.some(isReference);
}

function isReference(item: Item | Reference): item is Reference {
  return item.type === "reference";
}

async function lookUp(
  find: (turnId: string) => Promise<StoredTurn | undefined>,
  id: string,
  param: string,
): Promise<Item> {
  const address = readAddress(id);
  const turn = address && (await find(address.turnId));
  const found = address && turn?.[address.side][address.index];
  if (found !== undefined && !isRemoved(found)) return found;
  throw new GatewayError(
    "not_found",
    `Item with id '${id}' not found. Items are not stored if 'store' is false, and may have been deleted; send the item itself instead.`,
    { param },
  );
}
