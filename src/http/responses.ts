/** Responses after the fact: retrieve, follow again, cancel, delete, and list their input. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { toPlace } from "../core/conversation/conversations.ts";
import { GatewayError } from "../core/errors.ts";
import type { Voice } from "../core/ports.ts";
import type { Recalled } from "../core/live/recall.ts";
import type { ResponsesVoice } from "../protocols/responses/reply.ts";
import { readPageQuery, showsSeals, toItemPage } from "../protocols/responses/listing.ts";
import { watchClient } from "./client.ts";
import { readStartingAfter } from "./numbering.ts";
import { sendJson, sendStream } from "./send.ts";
import type { Terms } from "./terms.ts";

/** `GET /v1/responses/{id}`; with `stream` from the first event on, or after `starting_after`. */
export async function retrieveResponse(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { stream, starting_after } = request.query as { readonly stream?: string; readonly starting_after?: string };
  const { recalled, voice } = await find(request);
  if (stream !== "true" && stream !== "1") return sendJson(recalled.about, toText(recalled, voice), reply);
  const after = readStartingAfter(starting_after);
  if (after !== undefined && !recalled.isExact) throw eventsExpired(recalled);
  const client = watchClient(reply.raw);
  return request.terms.turns.run(client, { token: request.token, onlyFollows: true }, async () => {
    const answering = Promise.resolve({ about: recalled.about, events: recalled.follow(client.signal) });
    const numbering = { after, showsIds: false };
    return sendStream({ answering, voice, numbering, named: recalled.about, isRecalled: true }, reply);
  });
}

/** `POST /v1/responses/{id}/cancel` */
export async function cancelResponse(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { id } = request.params as { readonly id: string };
  const { owner } = request.token;
  const recalled = (await request.terms.gateway.cancel(owner, id)) ?? unknownResponse(id);
  if (!recalled.background) throw new GatewayError("not_cancellable", "Cannot cancel a synchronous response.");
  return sendJson(recalled.about, toText(recalled, voiceOf(request.terms, recalled, owner)), reply);
}

/** `DELETE /v1/responses/{id}` */
export async function deleteResponse(request: FastifyRequest): Promise<unknown> {
  const { id } = request.params as { readonly id: string };
  await find(request);
  if (!(await request.terms.gateway.forget(request.token.owner, id))) unknownResponse(id);
  return { id, object: "response", deleted: true };
}

/** `GET /v1/responses/{id}/input_items` */
export async function listInputItems(request: FastifyRequest): Promise<unknown> {
  const query = readPageQuery(request.query as Readonly<Record<string, unknown>>);
  const { recalled, voice } = await find(request);
  const places = recalled.input.map(({ turnId, index, item }) => toPlace({ turnId, side: "input", index }, item));
  return toItemPage(places, query, request.terms.protocols.responses.sealOf(request.token.owner), voice.wantsSummary);
}

async function find(request: FastifyRequest): Promise<{ readonly recalled: Recalled; readonly voice: ResponsesVoice }> {
  const { id } = request.params as { readonly id: string };
  const { owner } = request.token;
  const recalled = (await request.terms.gateway.recall(owner, id)) ?? unknownResponse(id);
  const isShown = showsSeals(request.query as Readonly<Record<string, unknown>>);
  return { recalled, voice: voiceOf(request.terms, recalled, owner, isShown) };
}

/** A turn of the other dialect has no memo, and is no response. */
function voiceOf({ protocols }: Terms, { memo, about }: Recalled, owner: string, showsSeals = false): ResponsesVoice {
  return memo === undefined ? unknownResponse(about.id) : protocols.responses.recall(memo, owner, showsSeals);
}

function unknownResponse(id: string): never {
  throw new GatewayError("not_found", `Response with id '${id}' not found.`);
}

function toText({ about, state }: Recalled, voice: Voice): string {
  if (state.status === "over") return voice.whole(about, state.answer);
  return voice.progress?.(about, state.status, state.items) ?? "";
}

function eventsExpired({ about }: Recalled): GatewayError {
  return new GatewayError(
    "events_expired",
    `The events of response '${about.id}' are no longer available one by one. Retrieve it without 'starting_after'.`,
    { param: "starting_after" },
  );
}
