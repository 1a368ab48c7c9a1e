/** Looks up the items that a request only names. */
import { readAddress } from "./address.ts";
import { GatewayError } from "../errors.ts";
import { type Item, isRemoved } from "../item.ts";
import type { SessionStore, StoredTurn } from "../store.ts";
import type { Ask, Reference } from "../turn.ts";

/** The same request with every reference replaced by the item that it names, which must be the owner's. */
export async function resolveReferences(store: SessionStore, owner: string, ask: Ask): Promise<Ask<Item>> {
  if (!ask.items.some(isReference)) return ask as Ask<Item>;
  const turns = new Map<string, Promise<StoredTurn | undefined>>();
  const find = (turnId: string): Promise<StoredTurn | undefined> => {
    const known = turns.get(turnId) ?? store.findTurn(owner, turnId);
    turns.set(turnId, known);
    return known;
  };
  const items: Item[] = [];
  for (const [index, item] of ask.items.entries()) {
    items.push(isReference(item) ? await lookUp(find, item.id, `${ask.itemsParam}[${index}]`) : item);
  }
  return { ...ask, items };
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
    `Item with id '${id}' not found. Items are not kept when 'store' is false; send the item itself instead.`,
    { param },
  );
}
