/** Conversations are sessions with a name from the start; their items are those on the path to the tip. */
import { GatewayError } from "../core/errors.ts";
import { type Item, keyOf } from "../core/item.ts";
import type { Conversations, ItemsWanted, Metadata, Page } from "../core/store.ts";
import { type Access, removeDoomed } from "./access.ts";
import { cold, type Tables, toNumber } from "./cold.ts";
import { toPlaces, toRow } from "./rows.ts";

/** How many turns are read at once: a page rarely needs more. */
const stepTurns = 20;

export function createConversations(access: Access, { one }: Tables): Conversations {
  const { read, write, scrub, secrets, loadTexts } = access;

  function find(owner: string, id: string): Promise<ConversationRow | undefined> {
    const name = toName(id);
    return one(cold.conversation, toNumber(name), name, owner);
  }

  /** What was deleted is gone from the raw files when it is told. */
  async function erased(deleted: boolean): Promise<boolean> {
    if (deleted) await scrub(false);
    return deleted;
  }

  return {
    forget: async (owner, key) => erased(await write("forget", { owner, key })),
    async createConversation(owner, { id, metadata, createdAt: at }, first) {
      await write("createConversation", {
        name: toName(id),
        owner,
        metadata,
        at,
        first: first && toRow(first, secrets),
      });
    },
    async conversation(owner, id) {
      const row = await find(owner, id);
      return row && { id, createdAt: row.created, metadata: JSON.parse(row.metadata) as Metadata };
    },
    describeConversation: (owner, id, metadata, at) => write("describe", { name: toName(id), owner, metadata, at }),
    append: (turn) => write("append", toRow(turn, secrets)),
    async deleteConversation(owner, id, moment, now) {
      const isThere = await write("dropSession", { name: toName(id), owner, moment, at: now });
      if (isThere) await removeDoomed(access);
      return erased(isThere);
    },
    async conversationItems(owner, id, wanted) {
      const row = await find(owner, id);
      if (row === undefined) return undefined;
      const path = row.tip === null ? [] : await read("pathNumbers", { n: row.tip });
      const turns = startAt(wanted.order === "desc" ? path : path.toReversed(), wanted);
      return readPage(turns, wanted);
    },
    deleteConversationItem: async (owner, id, item) =>
      erased(await write("deleteItem", { name: toName(id), owner, item })),
  };

  async function readPage(turns: readonly number[], { after, limit, order }: ItemsWanted): Promise<Page<Item>> {
    const entries: Item[] = [];
    for (let at = 0; at < turns.length && entries.length <= limit; at += stepTurns) {
      const rows = await read("turns", { turns: turns.slice(at, at + stepTurns) });
      const readText = await loadTexts(rows);
      for (const turn of rows) {
        const asked = toPlaces(turn, readText).map((item, index) => ({ place: `i${index}`, item }));
        const said = (JSON.parse(turn.answer) as (Item | null)[]).map((item, index) => ({
          place: `${index}`,
          item,
        }));
        const places = order === "asc" ? [...asked, ...said] : [...asked, ...said].toReversed();
        const listed = after !== undefined && turn.key === keyOf(after) ? behind(places, turn.key, after) : places;
        entries.push(...listed.flatMap(({ item }) => item ?? []));
      }
    }
    return { entries: entries.slice(0, limit), hasMore: entries.length > limit };
  }
}

/** From the turn that the last page ended in. */
function startAt(turns: readonly number[], { after }: ItemsWanted): readonly number[] {
  if (after === undefined) return turns;
  const at = turns.indexOf(toNumber(keyOf(after)));
  if (at < 0) throw unknownItem(after);
  return turns.slice(at);
}

interface ItemPlace {
  readonly place: string;
  readonly item: Item | null;
}

/** What a deleted item was is no longer known, but its place is. */
function behind(places: readonly ItemPlace[], key: string, after: string): readonly ItemPlace[] {
  const at = places.findIndex(({ place, item }) => item?.id === after || after.endsWith(`_${key}_${place}`));
  if (at < 0) throw unknownItem(after);
  return places.slice(at + 1);
}

function unknownItem(id: string): GatewayError {
  return new GatewayError("not_found", `Item with id '${id}' not found.`, { param: "after" });
}

interface ConversationRow {
  readonly n: number;
  readonly tip: number | null;
  readonly metadata: string;
  readonly created: number;
}

const toName = (id: string): string => id.slice("conv_".length);
