/** An item that is named by its id: ids carry the key of their turn, so no index of items is needed. */
import { GatewayError } from "./errors.ts";
import { type Item, keyOf } from "./item.ts";
import type { Store } from "./store.ts";
import type { Ask } from "./turn.ts";

export async function resolveReferences(store: Store, owner: string, ask: Ask): Promise<Ask> {
  if (!ask.items.some(({ type }) => type === "reference")) return ask;
  const items: Item[] = [];
  for (const item of ask.items) items.push(item.type === "reference" ? await find(item.id) : item);
  return { ...ask, items };

  async function find(id: string): Promise<Item> {
    const turn = await store.turn(owner, keyOf(id));
    const meant = turn && [...turn.answer, ...turn.input].find((item) => item.id === id);
    if (meant !== undefined) return meant;
    throw new GatewayError("not_found", `Item with id '${id}' not found.`, { param: ask.itemsParam });
  }
}
