/** Conversations over HTTP: create, read, update and delete; and their items one by one. */
import {
  checkConversationId,
  readNewConversation,
  readNewItems,
  readNewMetadata,
  toDeletedConversation,
  toWireConversation,
} from "../protocols/responses/conversation.ts";
import {
  findListed,
  readPageQuery,
  showsSeals,
  toItemList,
  toItemPage,
  toListedItem,
  unknownItem,
} from "../protocols/responses/listing.ts";
import { checkItems } from "./auth.ts";
import { workOnBody } from "./body.ts";
import { watchClient } from "./client.ts";
import { toParameters } from "./paths.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";

/** `POST /v1/conversations`; needs no body. */
export async function createConversation(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { conversations, owner, seal } = readCaller(request);
  const create = async (body: unknown) => {
    const { metadata, items } = readNewConversation(body, seal);
    checkItems(request.token, items, "items");
    const addition = { turnId: request.terms.newTurnId(), items };
    return toWireConversation(await conversations.create(owner, metadata, addition));
  };
  return workOnBody(reply, create, {});
}

/** `GET /v1/conversations/{id}` */
export async function retrieveConversation(request: HttpRequest): Promise<unknown> {
  const { conversations, owner, id } = readAsked(request);
  return toWireConversation(await conversations.read(owner, id));
}

/** `POST /v1/conversations/{id}` */
export async function updateConversation(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { conversations, owner, id } = readAsked(request);
  return workOnBody(reply, async (body) =>
    toWireConversation(await conversations.update(owner, id, readNewMetadata(body))),
  );
}

/** `DELETE /v1/conversations/{id}`: with all that was said in it. */
export async function deleteConversation(request: HttpRequest): Promise<unknown> {
  const { conversations, owner, id } = readAsked(request);
  await conversations.delete(owner, id);
  return toDeletedConversation(id);
}

/** `GET /v1/conversations/{id}/items` */
export async function listItems(request: HttpRequest): Promise<unknown> {
  const { conversations, owner, id, query, seal } = readAsked(request);
  const page = readPageQuery(query);
  return toItemPage(await conversations.places(owner, id), page, seal);
}

/** `POST /v1/conversations/{id}/items`; waits for the conversation's running turn. */
export async function createItems(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { conversations, owner, id, query, seal } = readAsked(request);
  return workOnBody(reply, async (body, signal) => {
    const items = readNewItems(body, seal);
    checkItems(request.token, items, "items");
    const addition = { turnId: request.terms.newTurnId(), items };
    const added = await conversations.append(owner, id, addition, signal);
    return toItemList(added, { seal, showsSeals: showsSeals(query) });
  });
}

/** `GET /v1/conversations/{id}/items/{item}` */
export async function retrieveItem(request: HttpRequest): Promise<unknown> {
  const { conversations, owner, id, itemId, query, seal } = readAsked(request);
  const place = findListed(await conversations.places(owner, id), itemId);
  return toListedItem(place, { seal, showsSeals: showsSeals(query) });
}

/** `DELETE /v1/conversations/{id}/items/{item}`; answers with the conversation. */
export async function deleteItem(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { conversations, owner, id, itemId } = readAsked(request);
  const place = findListed(await conversations.places(owner, id), itemId);
  const { signal } = watchClient(reply.raw);
  return toWireConversation((await conversations.removeItem(owner, id, place, signal)) ?? unknownItem(itemId));
}

function readCaller({ terms, token: { owner } }: HttpRequest) {
  return { conversations: terms.gateway.conversations, owner, seal: terms.protocols.responses.sealOf(owner) };
}

/** Who asks about which conversation, or about which item of it. */
function readAsked(request: HttpRequest) {
  const { id, item: itemId } = request.params as { readonly id: string; readonly item: string };
  const query = toParameters(request.url);
  return { ...readCaller(request), id: checkConversationId(id, "conversation_id"), itemId, query };
}
