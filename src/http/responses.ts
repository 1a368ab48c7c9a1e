/** What else there is about responses: retrieve, follow again, cancel, delete, list their input, count it, compact it. */
import { toPlace } from "../core/conversation/conversations.ts";
import { GatewayError } from "../core/errors.ts";
import { lengthOfItems } from "../core/frame/pieces.ts";
import type { Voice } from "../core/ports.ts";
import type { Recalled } from "../core/live/recall.ts";
import type { ResponsesVoice } from "../protocols/responses/reply.ts";
import { isObject } from "../protocols/fields.ts";
import { readCompactRequest, writeCompaction } from "../protocols/responses/compaction.ts";
import { readPageQuery, showsSeals, toItemPage } from "../protocols/responses/listing.ts";
import { toTokenCount } from "../protocols/responses/object.ts";
import { checkModels } from "./auth.ts";
import { workOnBody } from "./body.ts";
import { watchClient } from "./client.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import { checkRepeated } from "./unread.ts";
import { readHint } from "./hint.ts";
import { readStartingAfter } from "./numbering.ts";
import { toParameters } from "./paths.ts";
import { sendJson, sendStream, sendWhole } from "./send.ts";
import type { Terms } from "./terms.ts";

/** `GET /v1/responses/{id}`; with `stream` from the first event on, or after `starting_after`. */
export async function retrieveResponse(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { stream, starting_after } = toParameters(request.url);
  const { recalled, voice } = await find(request);
  if (!readStream(stream)) {
    const { about, state } = recalled;
    // Before its text is made: many may ask for a long answer at once.
    const items = state.status === "over" ? state.answer.items : state.items;
    checkRepeated(request.terms.held, reply, lengthOfItems(items, Buffer.byteLength));
    return sendJson(about, toText(recalled, voice), reply);
  }
  const after = readStartingAfter(starting_after);
  if (after !== undefined && !recalled.isExact) throw eventsExpired(recalled);
  const client = watchClient(reply.raw);
  const { signal } = client;
  // Only this is kept of it while a slow caller reads.
  const { about } = recalled;
  const answering = Promise.resolve({ about, events: recalled.follow(signal), size: recalled.size?.() });
  return request.terms.turns.run(client, { token: request.token, onlyFollows: true }, async () => {
    const numbering = { after, showsIds: false };
    return sendStream({ answering, voice, numbering, named: about, signal, isRecalled: true }, reply);
  });
}

/** `POST /v1/responses/{id}/cancel` */
export async function cancelResponse(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { id } = request.params as { readonly id: string };
  const { owner } = request.token;
  const recalled = (await request.terms.gateway.cancel(owner, id)) ?? unknownResponse(id);
  if (!recalled.background) throw new GatewayError("not_cancellable", "Cannot cancel a synchronous response.");
  return sendJson(recalled.about, toText(recalled, voiceOf(request.terms, recalled, owner)), reply);
}

/** `DELETE /v1/responses/{id}` */
export async function deleteResponse(request: HttpRequest): Promise<unknown> {
  const { id } = request.params as { readonly id: string };
  await find(request);
  if (!(await request.terms.gateway.forget(request.token.owner, id))) unknownResponse(id);
  return { id, object: "response", deleted: true };
}

/** `GET /v1/responses/{id}/input_items` */
export async function listInputItems(request: HttpRequest): Promise<unknown> {
  const query = readPageQuery(toParameters(request.url));
  const { recalled, voice } = await find(request);
  const places = recalled.input.map(({ turnId, index, item }) => toPlace({ turnId, side: "input", index }, item));
  return toItemPage(places, query, request.terms.protocols.responses.sealOf(request.token.owner), voice.wantsSummary);
}

/** `POST /v1/responses/input_tokens`: takes the body of a create request. */
export async function countInputTokens(request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { terms, headers, token } = request;
  const { owner, alwaysResends } = token;
  return workOnBody(reply, async (body, signal) => {
    // The default adapter may not be for a token that may use only some models.
    const { ask } = terms.protocols.responses.parse(token.models === undefined ? withModel(body) : body, owner);
    checkModels(token, ask);
    const hinted = readHint(terms.hints, headers, ask.user);
    const caller = { turnId: terms.newTurnId(), owner, alwaysResends, ...hinted, signal };
    const { tokens, isExact } = await terms.gateway.countTokens(ask, caller);
    reply.header("x-portico-tokens", isExact ? "exact" : "estimated");
    return toTokenCount(tokens);
  });
}

/** The model is optional there; without one, the default adapter's counts. */
function withModel(body: unknown): unknown {
  return isObject(body) && (body["model"] ?? null) === null ? { ...body, model: "default" } : body;
}

/** `POST /v1/responses/compact`: what the user said and a summary, to continue with; nothing is stored. */
export async function compact({ terms, token }: HttpRequest, reply: HttpReply): Promise<unknown> {
  const { owner } = token;
  const seal = terms.protocols.responses.sealOf(owner);
  return workOnBody(reply, async (body, signal) => {
    const ask = readCompactRequest(body, seal);
    checkModels(token, ask);
    const placed = await terms.gateway.answer(ask, { turnId: terms.newTurnId(), owner, hint: undefined, signal });
    const { context = [] } = placed;
    return sendWhole(placed, { whole: (about, answer) => writeCompaction(about, context, answer, seal) }, reply);
  });
}

/** In any case: Python writes True. A repeated parameter arrives as a list. */
function readStream(value: unknown = ""): boolean {
  switch (String(value).toLowerCase()) {
    case "true":
    case "1":
      return true;
    case "false":
    case "0":
    case "":
      return false;
    default:
      throw new GatewayError("invalid_value", "Invalid 'stream': expected true or false.", { param: "stream" });
  }
}

async function find(request: HttpRequest): Promise<{ readonly recalled: Recalled; readonly voice: ResponsesVoice }> {
  const { id } = request.params as { readonly id: string };
  const { owner } = request.token;
  const recalled = (await request.terms.gateway.recall(owner, id)) ?? unknownResponse(id);
  const isShown = showsSeals(toParameters(request.url));
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
