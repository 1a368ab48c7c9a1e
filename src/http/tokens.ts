/** Counts the input tokens of a request over HTTP, without a response. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { isObject } from "../protocols/fields.ts";
import { toTokenCount } from "../protocols/responses/object.ts";
import { workOnBody } from "./body.ts";
import { readHint } from "./hint.ts";

/** `POST /v1/responses/input_tokens`: takes the body of a create request. */
export async function countInputTokens(
  { terms, token, headers }: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { owner } = token;
  return workOnBody(reply, async (body, signal) => {
    const { ask } = terms.protocols.responses.parse(withModel(body), owner);
    const caller = { turnId: terms.newTurnId(), owner, ...readHint(terms.hints, headers, ask.user), signal };
    const { tokens, isExact } = await terms.gateway.countTokens(ask, caller);
    reply.header("x-portico-tokens", isExact ? "exact" : "estimated");
    return toTokenCount(tokens);
  });
}

/** The model is optional here; without one, the default adapter's counts. */
function withModel(body: unknown): unknown {
  return isObject(body) && (body["model"] ?? null) === null ? { ...body, model: "default" } : body;
}
