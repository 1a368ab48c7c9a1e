/** Conversations over HTTP: create, read, update and delete; and their items one by one. */
import type { FastifyReply, FastifyRequest } from "fastify";
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
import type { Seal } from "../protocols/responses/seal.ts";
import { workOnBody } from "./body.ts";
import { watchClient } from "./client.ts";

/** `POST /v1/conversations`; needs no body. */
export async function createConversation(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { terms, token } = request;
  const create = async (body: unknown) => {
    const { metadata, items } = readNewConversation(body, sealOf(request));
    const addition = { turnId: terms.newTurnId(), items };
    return toWireConversation(await terms.gateway.conversations.create(token.owner, metadata, addition));
  };
  return workOnBody(reply, create, {});
}

/** `GET /v1/conversations/{id}` */
export async function retrieveConversation(request: FastifyRequest): Promise<unknown> {
  return toWireConversation(await request.terms.gateway.conversations.read(request.token.owner, readId(request)));
}

/** `POST /v1/conversations/{id}` */
export async function updateConversation(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const id = readId(request);
  return workOnBody(reply, async (body) => {
    const metadata = readNewMetadata(body);
    return toWireConversation(await request.terms.gateway.conversations.update(request.token.owner, id, metadata));
  });
}

/** `DELETE /v1/conversations/{id}`: with all that was said in it. */
export async function deleteConversation(request: FastifyRequest): Promise<unknown> {
  const id = readId(request);
  await request.terms.gateway.conversations.delete(request.token.owner, id);
  return toDeletedConversation(id);
}

/** `GET /v1/conversations/{id}/items` */
export async function listItems(request: FastifyRequest): Promise<unknown> {
  const id = readId(request);
  const query = readPageQuery(readQuery(request));
  return toItemPage(await request.terms.gateway.conversations.places(request.token.owner, id), query, sealOf(request));
}

/** `POST /v1/conversations/{id}/items`; waits for the conversation's running turn. */
export async function createItems(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const id = readId(request);
  return workOnBody(reply, async (body, signal) => {
    const seal = sealOf(request);
    const addition = { turnId: request.terms.newTurnId(), items: readNewItems(body, seal) };
    const added = await request.terms.gateway.conversations.append(request.token.owner, id, addition, signal);
    return toItemList(added, { seal, showsSeals: showsSeals(readQuery(request)) });
  });
}

/** `GET /v1/conversations/{id}/items/{item}` */
export async function retrieveItem(request: FastifyRequest): Promise<unknown> {
  const places = await request.terms.gateway.conversations.places(request.token.owner, readId(request));
  const sealing = { seal: sealOf(request), showsSeals: showsSeals(readQuery(request)) };
  return toListedItem(findListed(places, readItemId(request)), sealing);
}

/** `DELETE /v1/conversations/{id}/items/{item}`; answers with the conversation. */
export async function deleteItem(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { owner } = request.token;
  const id = readId(request);
  const itemId = readItemId(request);
  const place = findListed(await request.terms.gateway.conversations.places(owner, id), itemId);
  const { signal } = watchClient(reply.raw);
  const conversation = await request.terms.gateway.conversations.removeItem(owner, id, place, signal);
  return toWireConversation(conversation ?? unknownItem(itemId));
}

function sealOf({ terms, token }: FastifyRequest): Seal {
  return terms.protocols.responses.sealOf(token.owner);
}

function readId(request: FastifyRequest): string {
  const { id } = request.params as { readonly id: string };
  return checkConversationId(id, "conversation_id");
}

function readItemId(request: FastifyRequest): string {
  return (request.params as { readonly item: string }).item;
}

function readQuery(request: FastifyRequest): Readonly<Record<string, unknown>> {
  return request.query as Readonly<Record<string, unknown>>;
}
