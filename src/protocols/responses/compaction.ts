/** Compacts conversations on request: `POST /v1/responses/compact`. */
import type { Item, Message } from "../../core/item.ts";
import type { About } from "../../core/ports.ts";
import type { Answer, Ask } from "../../core/turn.ts";
import { isPresent, missing, readBody } from "../fields.ts";
import { toSeconds } from "../time.ts";
import { toWireUsage } from "./object.ts";
import { toItemId, toWireItem } from "./output.ts";
import { readRequest } from "./request.ts";
import type { Seal } from "./seal.ts";

/** Nothing is stored: the caller continues with the result. */
export function readCompactRequest(body: unknown, seal: Seal): Ask {
  const fields = readBody(body);
  if (isPresent(fields, "model") && !isPresent(fields, "input") && !isPresent(fields, "previous_response_id")) {
    missing("input", " One of 'input' or 'previous_response_id' must be provided.");
  }
  const { model, input, previous_response_id, instructions } = fields.values;
  const { ask } = readRequest({ model, input, previous_response_id, instructions, store: false }, seal);
  return { ...ask, compacts: true };
}

/** The user's words verbatim, and a summary of the rest: the input of a new chain. */
export function writeCompaction(about: About, context: readonly Item[], answer: Answer, seal: Seal): string {
  const said = context.filter((item): item is Message => item.type === "message" && item.role === "user");
  const output = [...said, ...answer.items].map((item, index) =>
    toWireItem(item, toItemId(about.id, item, index), "completed", { seal, showsSeals: false }),
  );
  return JSON.stringify({
    id: about.id,
    object: "response.compaction",
    created_at: toSeconds(about.createdAt),
    output,
    usage: toWireUsage(answer.usage ?? unknownUsage),
  });
}

/** The wire has no null here, for an adapter that counts nothing. */
const unknownUsage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 };
