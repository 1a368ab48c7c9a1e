/** How long a request is, over HTTP, before anybody is asked to answer it. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { isObject } from "../protocols/fields.ts";
import { toTokenCount } from "../protocols/responses/object.ts";
import { workOnBody } from "./body.ts";
import { readHint } from "./hint.ts";

/** `POST /v1/responses/input_tokens`: the body of a response that is not made. */
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

/** The model may be left open here: then it is the default adapter's that counts. */
function withModel(body: unknown): unknown {
  return isObject(body) && (body["model"] ?? null) === null ? { ...body, model: "default" } : body;
}
