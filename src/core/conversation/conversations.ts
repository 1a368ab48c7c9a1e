/**
 * Conversations as their owners see them: created, read item by item, extended, deleted. A session is a conversation.
 */
import type { Address } from "./address.ts";
import { noPath, type Path, readThread, talkFrom, turnsOf } from "../place/path.ts";
import type { PlaceParts } from "../place/place.ts";
import { GatewayError } from "../errors.ts";
import type { GatewayParts } from "../gateway.ts";
import { exchangeIds, exchangeOf, type Item, isRemoved, removed } from "../item.ts";
import { toShown } from "../turn-record.ts";
import { surplusWith } from "../place/surplus.ts";
import { checkOutputs, pairTools } from "../place/tools.ts";
import { brokenOffOf } from "../frame/replay.ts";
import { resolveReferences } from "./references.ts";
import { checkSize } from "../size.ts";
import type { Conversation, Metadata, PathTurn, StoredTurn } from "../store.ts";
import type { Reference } from "../turn.ts";

/** If the owner has no such conversation, whoever else may have it, everything here throws the same `not_found`. */
export interface ConversationDesk {
  create(owner: string, metadata: Metadata, addition: Addition): Promise<Conversation>;
  read(owner: string, conversationId: string): Promise<Conversation>;
  /** Replaces the metadata. */
  update(owner: string, conversationId: string, metadata: Metadata): Promise<Conversation>;
  /** Deletes the conversation and all that was said in it. */
  delete(owner: string, conversationId: string): Promise<void>;
  /** The places of all items of its current thread, oldest first. */
  places(owner: string, conversationId: string): Promise<readonly ItemPlace[]>;
  /** Appends items once no turn of the conversation runs any more; returns where they are. */
  append(owner: string, conversationId: string, addition: Addition, signal: AbortSignal): Promise<readonly ItemPlace[]>;
  /** Deletes an item; its place stays. Undefined: the conversation has no such item. */
  removeItem(
    owner: string,
    conversationId: string,
    address: Address,
    signal: AbortSignal,
  ): Promise<Conversation | undefined>;
}

/** Items that somebody other than a model adds, and the id of the turn they become. */
interface Addition {
  readonly turnId: string;
  readonly items: readonly (Item | Reference)[];
}

/** Where an item is, or was. */
export interface ItemPlace extends Address {
  /** Undefined: deleted. */
  readonly item: Item | undefined;
  /** It was not cut off while it was being said. */
  readonly isWhole: boolean;
}

export interface ConversationParts
  extends Pick<GatewayParts, "store" | "limits" | "now" | "newSessionId">, Pick<PlaceParts, "queue" | "chain"> {}

/** How often items are added again because a turn found by its history came in between. */
const maxAttempts = 3;

export function createConversations(parts: ConversationParts): ConversationDesk {
  const { store, queue, chain, limits, now } = parts;

  async function read(owner: string, conversationId: string): Promise<Conversation> {
    const conversation = await store.readSession(conversationId);
    return conversation?.owner === owner ? conversation : unknownConversation(conversationId);
  }

  /** Which item of each was cut off: a path does not have what was told, and few turns are incomplete. */
  async function readBrokenOff(turns: readonly PathTurn[]): Promise<ReadonlyMap<string, number | undefined>> {
    const incomplete = turns.filter(({ status }) => status === "incomplete");
    const found = await Promise.all(incomplete.map(({ owner, id }) => store.findTurn(owner, id)));
    return new Map(found.flatMap((turn) => (turn === undefined ? [] : [[turn.id, brokenOffOf(turn)]])));
  }

  async function take(owner: string, { items }: Addition): Promise<readonly Item[]> {
    checkSize({ items, itemsParam }, limits(), []);
    return resolveReferences(store, owner, { items, itemsParam }, limits().maxReferencedCharacters);
  }

  function toAdded(
    session: Pick<Conversation, "id" | "owner">,
    path: Path,
    id: string,
    items: readonly Item[],
  ): StoredTurn {
    const given = exchangeIds(items, "tools");
    // One call of an id is enough: some models use one for all of their calls.
    const calls = new Map<string, Item>();
    for (const item of talkFrom(path, 0)) {
      const { side, id = "" } = exchangeOf(item) ?? {};
      if (side === "model" && given.has(id)) calls.set(`${item.type} ${id}`, item);
    }
    // An output without its call would make every later turn of the conversation fail.
    checkOutputs(pairTools([...calls.values(), ...items]).strays, itemsParam);
    return toShown(chain, { id, owner: session.owner, session: session.id, createdAt: now(), model: "" }, path, items);
  }

  return {
    read,
    async create(owner, metadata, addition) {
      const items = await take(owner, addition);
      const id = parts.newSessionId();
      const shown = items.length === 0 ? undefined : toAdded({ id, owner }, noPath, addition.turnId, items);
      const conversation = { id, owner, createdAt: now(), metadata, tip: shown?.id, resends: false };
      await store.createSession(conversation, shown);
      return conversation;
    },
    async update(owner, conversationId, metadata) {
      if (!(await store.updateMetadata(owner, conversationId, metadata))) unknownConversation(conversationId);
      return read(owner, conversationId);
    },
    async delete(owner, conversationId) {
      if (!(await store.deleteSession(owner, conversationId))) unknownConversation(conversationId);
    },
    async places(owner, conversationId) {
      const turns = turnsOf(await readThread(store, await read(owner, conversationId)));
      const brokenOff = await readBrokenOff(turns);
      return turns.flatMap((turn) => placesOf(turn, brokenOff.get(turn.id)));
    },
    async append(owner, conversationId, addition, signal) {
      await read(owner, conversationId);
      const items = await take(owner, addition);
      if (items.length === 0) return [];
      const leave = await queue.enter(conversationId, signal);
      try {
        for (let attempt = 0; attempt < maxAttempts; attempt++) {
          const conversation = await read(owner, conversationId);
          const path = await readThread(store, conversation);
          const shown = toAdded(conversation, path, addition.turnId, items);
          const isStored = await store.commit({
            turns: [shown],
            session: { id: conversationId, expectedTip: conversation.tip, otherwise: "refuse", resends: false },
            forget: surplusWith(path, [items], limits()).map(({ id }) => id),
          });
          if (isStored) return placesOf(shown);
        }
      } finally {
        leave();
      }
      throw conversationMoved();
    },
    async removeItem(owner, conversationId, { turnId, side, index }, signal) {
      // If two callers delete items of one turn, the second must see what the first has left of it.
      const leave = await queue.enter(turnId, signal);
      try {
        const conversation = await read(owner, conversationId);
        const turn = turnsOf(await readThread(store, conversation)).find(({ id }) => id === turnId);
        const item = turn?.[side][index];
        if (turn === undefined || item === undefined || isRemoved(item)) return undefined;
        const left = turn[side].with(index, removed);
        const [input, output] = side === "input" ? [left, turn.output] : [turn.input, left];
        return (await store.replaceItems(turnId, input, output)) ? conversation : undefined;
      } finally {
        leave();
      }
    },
  };
}

/** Where an item is, unless only its place is left. */
export function toPlace(address: Address, item: Item, isWhole = true): ItemPlace {
  return { ...address, item: isRemoved(item) ? undefined : item, isWhole };
}

function placesOf({ id: turnId, input, output }: PathTurn, brokenOff?: number): readonly ItemPlace[] {
  return [
    ...input.map((item, index) => toPlace({ turnId, side: "input", index }, item)),
    ...output.map((item, index) => toPlace({ turnId, side: "output", index }, item, index !== brokenOff)),
  ];
}

/** The callers' name for the items they add. */
const itemsParam = "items";

function unknownConversation(conversationId: string): never {
  throw new GatewayError("not_found", `Conversation with id '${conversationId}' not found.`);
}

function conversationMoved(): GatewayError {
  return new GatewayError(
    "session_busy",
    "The conversation changed while items were added to it, so they were not stored. Send them again.",
    { retryAfterSeconds: 1 },
  );
}
