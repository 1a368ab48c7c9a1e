/** One turn over HTTP: a parsed body in, an answer out, whole or as server-sent events. */
import { setImmediate as breathe } from "node:timers/promises";
import type { Protocol } from "../core/ports.ts";
import { checkModels } from "./auth.ts";
import { readJsonBody } from "./body.ts";
import { watchClient } from "./client.ts";
import { readHint } from "./hint.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import { readLastEventId } from "./numbering.ts";
import { toTarget } from "./paths.ts";
import type { HttpReply } from "./reply.ts";
import type { HttpRequest } from "./request.ts";
import { sendJson, sendStream, sendWhole } from "./send.ts";
import { readTrace } from "./trace.ts";

/** Answers a request in its own dialect. */
export async function answerTurn(protocol: Protocol, request: HttpRequest, reply: HttpReply): Promise<unknown> {
  const client = watchClient(reply.raw);
  const { headers, token, terms } = request;
  const { ask, voice, hinted, key, last, asking } = await readAsked(protocol, request, reply);
  return terms.turns.run(client, asking, async (acquireSlot) => {
    const turnId = terms.newTurnId();
    const numbering = key && ask.stream ? { after: last?.number, showsIds: true } : undefined;
    const answering = terms.gateway.answer(ask, {
      turnId,
      owner: token.owner,
      alwaysResends: token.alwaysResends,
      ...hinted,
      signal: client.signal,
      trace: request.span?.trace ?? readTrace(headers),
      memo: voice.memo,
      key,
      resumes: last,
      stay: acquireSlot,
    });
    if (ask.stream) {
      const named = { id: turnId, model: ask.model };
      return sendStream({ answering, voice, numbering, named, signal: client.signal }, reply);
    }
    const placed = await answering;
    if (ask.background !== true || voice.progress === undefined) return sendWhole(placed, voice, reply);
    // A turn that need not wait for another is placed meanwhile, so that its caller learns where.
    await breathe();
    request.about = placed.about;
    return sendJson(placed.about, voice.progress(placed.about, "queued", []), reply, placed.isRepeated);
  });
}

/**
 * Whatever can be refused at once comes first: a turn that has begun must not be abandoned. Only this function holds
 * the body, so that it is free during a long answer.
 */
async function readAsked(protocol: Protocol, request: HttpRequest, reply: HttpReply) {
  const { headers, token, terms, url } = request;
  // Whether it begins or joins a turn is known only once its key is looked up.
  const onlyFollows = headers["idempotency-key"] !== undefined;
  const body = await readJsonBody(reply, { onlyFollows, listName: protocol.listName });
  const asking = { token, bytes: body.heldBytes, onlyFollows };
  terms.turns.check(asking);
  const { ask, voice, isUnsettled } = protocol.parse(body.value, token.owner, body.earlier);
  checkModels(token, ask);
  if (isUnsettled !== true) body.keep?.(ask.items);
  const hinted = readHint(terms.hints, headers, ask.user);
  const key = readIdempotencyKey(headers, toTarget(url), hinted.hint, body.bytes);
  const last = key && ask.stream ? readLastEventId(headers) : undefined;
  return { ask, voice, hinted, key, last, asking };
}
