/** Conversations: made, read, described and deleted; and their items one by one. */
import { GatewayError } from "../core/errors.ts";
import type { Gateway } from "../core/gateway.ts";
import { type Item, keyOf } from "../core/item.ts";
import type { Conversation, Conversations, Operator, Store } from "../core/store.ts";
import { readMetadata } from "../wires/common.ts";
import { missing, readBody as readFields } from "../wires/fields.ts";
import { checkConversationId, readItems, toKeptId, writeItem } from "../wires/responses/index.ts";
import type { Seal } from "../wires/wire.ts";
import { hasBody, readBody } from "./body.ts";
import { behind, type Call, type Route } from "./call.ts";
import { toErasureHeaders } from "./deletion.ts";
import { readItemsWanted, showsSeals, unknownItem, writeList } from "./query.ts";
import { toQuery } from "./router.ts";

export interface ConversationParts {
  readonly gateway: Gateway;
  readonly store: Conversations & Pick<Store, "turn"> & Pick<Operator, "hasUnfinishedErasure">;
  readonly sealOf: (owner: string) => Seal;
  readonly newKey: () => string;
  readonly now: () => number;
}

export function createConversationRoutes({ gateway, store, sealOf, newKey, now }: ConversationParts): readonly Route[] {
  const path = "/v1/conversations";
  const toRoute = behind("responses");
  return [
    toRoute("POST", path, async (call) => {
      const { owner } = call.token;
      const fields = readFields(hasBody(call.request) ? (await readBody(call)).json : {});
      const metadata = readMetadata(fields, "metadata") ?? {};
      const items = readItems(fields, "items", sealOf(owner)) ?? [];
      return { body: toWire(await gateway.create(owner, metadata, items)) };
    }),
    toRoute("GET", `${path}/:id`, async (call) => ({ body: toWire(await read(call)) })),
    // Null removes all metadata.
    toRoute("POST", `${path}/:id`, async (call) => {
      const fields = readFields((await readBody(call)).json);
      if (fields.values["metadata"] === undefined) missing("metadata");
      const metadata = readMetadata(fields, "metadata") ?? {};
      const id = idIn(call);
      known(await store.describeConversation(call.token.owner, id, metadata, now()), id);
      return { body: toWire(await read(call)) };
    }),
    toRoute("DELETE", `${path}/:id`, async (call) => {
      const id = idIn(call);
      known(await store.deleteConversation(call.token.owner, id, newKey(), now()), id);
      return { body: { id, object: "conversation.deleted", deleted: true }, headers: toErasureHeaders(store) };
    }),
    toRoute("GET", `${path}/:id/items`, async (call) => {
      const { owner } = call.token;
      const id = idIn(call);
      const query = toQuery(call.request.url);
      const page = known(await store.conversationItems(owner, id, readItemsWanted(query)), id);
      return { body: writeList(page, sealOf(owner), showsSeals(query)) };
    }),
    toRoute("POST", `${path}/:id/items`, async (call) => {
      const { owner } = call.token;
      const id = idIn(call);
      const given = readItems(readFields((await readBody(call)).json), "items", sealOf(owner)) ?? missing("items");
      const entries = known(await gateway.add(owner, id, given, call.signal), id);
      return { body: writeList({ entries, hasMore: false }, sealOf(owner), showsSeals(toQuery(call.request.url))) };
    }),
    toRoute("GET", `${path}/:id/items/:item`, async (call) => {
      const item = await find(call);
      return { body: writeItem(item, sealOf(call.token.owner), showsSeals(toQuery(call.request.url))) };
    }),
    toRoute("DELETE", `${path}/:id/items/:item`, async (call) => {
      const conversation = await read(call);
      const isThere = await store.deleteConversationItem(call.token.owner, conversation.id, itemIn(call));
      if (!isThere) throw unknownItem(call.names[1] ?? "");
      return { body: toWire(conversation), headers: toErasureHeaders(store) };
    }),
  ];

  async function read(call: Call): Promise<Conversation> {
    const id = idIn(call);
    return known(await store.conversation(call.token.owner, id), id);
  }

  /** An item's id names its turn. */
  async function find(call: Call): Promise<Item> {
    const { id } = await read(call);
    const wanted = itemIn(call);
    const turn = await store.turn(call.token.owner, keyOf(wanted));
    const { input = [], answer = [] } = turn?.session === id ? turn : {};
    const item = [...input, ...answer].find((each) => each.id === wanted);
    if (item === undefined) throw unknownItem(call.names[1] ?? "");
    return item;
  }
}

function idIn({ names }: Call): string {
  return checkConversationId(names[0] ?? "", "conversation_id");
}

function itemIn({ names }: Call): string {
  return toKeptId(names[1] ?? "");
}

function toWire({ id, createdAt, metadata }: Conversation): object {
  return { id, object: "conversation", created_at: Math.floor(createdAt / 1_000), metadata };
}

/** What a conversation has; throws if there is none. */
function known<Found>(found: Found | false | undefined, id: string): Found {
  if (found === undefined || found === false)
    throw new GatewayError("not_found", `Conversation with id '${id}' not found.`);
  return found;
}
