/** Conversations over HTTP: made, read, changed and deleted, and their items one by one. */
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
import { readJsonBody } from "./body.ts";
import { watchClient } from "./client.ts";
import type { ResponseParts } from "./responses.ts";

/** `POST /v1/conversations`; also without a body. */
export async function createConversation(
  parts: ResponseParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const body = hasBody(request) ? (await readJsonBody(parts, reply)).value : {};
  return parts.turns.run(new AbortController(), request.token, async () => {
    const { metadata, items } = readNewConversation(body, sealOf(parts, request));
    const addition = { turnId: parts.newTurnId(), items };
    return toWireConversation(await parts.gateway.conversations.create(request.token.owner, metadata, addition));
  });
}

/** `GET /v1/conversations/{id}` */
export async function retrieveConversation({ gateway }: ResponseParts, request: FastifyRequest): Promise<unknown> {
  return toWireConversation(await gateway.conversations.read(request.token.owner, readId(request)));
}

/** `POST /v1/conversations/{id}` */
export async function updateConversation(
  parts: ResponseParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const id = readId(request);
  const { value } = await readJsonBody(parts, reply);
  return parts.turns.run(new AbortController(), request.token, async () => {
    const metadata = readNewMetadata(value);
    return toWireConversation(await parts.gateway.conversations.update(request.token.owner, id, metadata));
  });
}

/** `DELETE /v1/conversations/{id}`: all that was said in it goes with it. */
export async function deleteConversation({ gateway }: ResponseParts, request: FastifyRequest): Promise<unknown> {
  const id = readId(request);
  await gateway.conversations.delete(request.token.owner, id);
  return toDeletedConversation(id);
}

/** `GET /v1/conversations/{id}/items` */
export async function listItems({ gateway, protocol }: ResponseParts, request: FastifyRequest): Promise<unknown> {
  const id = readId(request);
  const query = readPageQuery(readQuery(request));
  return toItemPage(await gateway.conversations.places(request.token.owner, id), query, sealOf({ protocol }, request));
}

/** `POST /v1/conversations/{id}/items`; waits for a turn of the conversation that runs. */
export async function createItems(
  parts: ResponseParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const id = readId(request);
  const client = watchClient(reply.raw);
  const { value } = await readJsonBody(parts, reply);
  return parts.turns.run(client, request.token, async () => {
    const seal = sealOf(parts, request);
    const addition = { turnId: parts.newTurnId(), items: readNewItems(value, seal) };
    const added = await parts.gateway.conversations.append(request.token.owner, id, addition, client.signal);
    return toItemList(added, { seal, showsSeals: showsSeals(readQuery(request)) });
  });
}

/** `GET /v1/conversations/{id}/items/{item}` */
export async function retrieveItem({ gateway, protocol }: ResponseParts, request: FastifyRequest): Promise<unknown> {
  const places = await gateway.conversations.places(request.token.owner, readId(request));
  const sealing = { seal: sealOf({ protocol }, request), showsSeals: showsSeals(readQuery(request)) };
  return toListedItem(findListed(places, readItemId(request)), sealing);
}

/** `DELETE /v1/conversations/{id}/items/{item}`; answers with the conversation. */
export async function deleteItem(
  { gateway }: ResponseParts,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { owner } = request.token;
  const id = readId(request);
  const itemId = readItemId(request);
  const place = findListed(await gateway.conversations.places(owner, id), itemId);
  const { signal } = watchClient(reply.raw);
  const conversation = await gateway.conversations.removeItem(owner, id, place, signal);
  return toWireConversation(conversation ?? unknownItem(itemId));
}

function sealOf({ protocol }: Pick<ResponseParts, "protocol">, request: FastifyRequest): Seal {
  return protocol.sealOf(request.token.owner);
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

function hasBody({ headers }: FastifyRequest): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
