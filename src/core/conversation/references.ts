/** Looks up the items that a request refers to. */
import { readAddress } from "./address.ts";
import { GatewayError } from "../errors.ts";
import { type Item, isRemoved } from "../item.ts";
import type { SessionStore, StoredTurn } from "../store.ts";
import type { Ask, Reference } from "../turn.ts";

/**
 * The same items with every reference replaced by its item, which must be the owner's. A few bytes may refer to a long
 * item many times, so together they may not be longer than a body could be.
 */
export async function resolveReferences(
  store: Pick<SessionStore, "findTurn">,
  owner: string,
  { items: asked, itemsParam }: Pick<Ask, "items" | "itemsParam">,
  maxReferencedCharacters: number,
): Promise<readonly Item[]> {
  if (asked.every(isItem)) return asked;
  const turns = new Map<string, Promise<StoredTurn | undefined>>();
  const find = (turnId: string): Promise<StoredTurn | undefined> => {
    const known = turns.get(turnId) ?? store.findTurn(owner, turnId);
    turns.set(turnId, known);
    return known;
  };
  const items: Item[] = [];
  let characters = 0;
  for (const [index, each] of asked.entries()) {
    const item = isItem(each) ? each : await lookUp(find, each.id, `${itemsParam}[${index}]`);
    items.push(item);
    if (item === each) continue;
    characters += JSON.stringify(item).length;
    if (characters > maxReferencedCharacters) throw tooMuch(maxReferencedCharacters, itemsParam);
  }
  return items;
}

function isItem(item: Item | Reference): item is Item {
  return item.type !== "reference";
}

function tooMuch(maxCharacters: number, param: string): GatewayError {
  return new GatewayError(
    "body_too_large",
    `The items that '${param}' refers to have more than ${maxCharacters} characters in total (gateway.http.limits.max_body_bytes). Refer to fewer of them.`,
    { param },
  );
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
