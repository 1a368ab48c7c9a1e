/** Items that are named by their ids: ids carry the key of their turn, so no index of items is needed. */
import { GatewayError } from "./errors.ts";
import { type Item, keyOf } from "./item.ts";
import type { Store, StoredTurn } from "./store.ts";
import type { Ask } from "./turn.ts";

/** A few bytes may name a long item many times: together they may not be longer than a body could be. */
const maxCharacters = 20 * 1024 * 1024;
const tooMuch = `The items that are referred to have more than ${maxCharacters} characters in total. Refer to fewer of them.`;

/** Whether an item stands for another. */
export const isReference = ({ type }: Item): boolean => type === "reference";

/** The same with every item in the place of its name. */
export async function resolveReferences<Given extends Pick<Ask, "items" | "itemsParam">>(
  store: Pick<Store, "turn">,
  owner: string,
  given: Given,
): Promise<Given> {
  const { items: asked, itemsParam } = given;
  if (!asked.some(isReference)) return given;
  const turns = new Map<string, StoredTurn | undefined>();
  const items: Item[] = [];
  let characters = 0;
  for (const [at, item] of asked.entries()) {
    const meant = item.type === "reference" ? await find(item.id, `${itemsParam}[${at}]`) : item;
    items.push(meant);
    if (meant !== item) characters += JSON.stringify(meant).length;
    if (characters > maxCharacters) throw new GatewayError("body_too_large", tooMuch, { param: itemsParam });
  }
  return { ...given, items };

  async function find(id: string, param: string): Promise<Item> {
    const key = keyOf(id);
    if (!turns.has(key)) turns.set(key, await store.turn(owner, key));
    const { answer = [], input = [] } = turns.get(key) ?? {};
    const meant = answer.find((item) => item.id === id) ?? input.find((item) => item.id === id);
    if (meant !== undefined) return meant;
    const remedy = "Items are not stored if 'store' is false, and may have been deleted; send the item itself instead.";
    throw new GatewayError("not_found", `Item with id '${id}' not found. ${remedy}`, { param });
  }
}
