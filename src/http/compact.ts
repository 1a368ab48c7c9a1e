/** Compacts conversations over HTTP: returns what the user said and a summary, to continue with. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { readCompactRequest, writeCompaction } from "../protocols/responses/compaction.ts";
import { workOnBody } from "./body.ts";
import { sendWhole } from "./send.ts";

/** `POST /v1/responses/compact`; nothing is stored. */
export async function compact({ terms, token }: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { owner } = token;
  const seal = terms.protocols.responses.sealOf(owner);
  return workOnBody(reply, async (body, signal) => {
    const caller = { turnId: terms.newTurnId(), owner, hint: undefined, signal };
    const placed = await terms.gateway.answer(readCompactRequest(body, seal), caller);
    const { context = [] } = placed;
    return sendWhole(placed, { whole: (about, answer) => writeCompaction(about, context, answer, seal) }, reply);
  });
}
