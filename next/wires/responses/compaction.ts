/** Compacts a conversation on request: `POST /v1/responses/compact`. */
import type { Heading } from "../../core/gateway.ts";
import type { Item } from "../../core/item.ts";
import type { Answer, Ask } from "../../core/turn.ts";
import { isPresent, missing, readBody } from "../fields.ts";
import type { Circumstances, Seal } from "../wire.ts";
import { toText } from "./echo.ts";
import { toResponseId, toSeconds, writeUsage } from "./object.ts";
import { readRequest } from "./request.ts";
import { writeItem } from "./written.ts";

/** Nothing is kept: the caller goes on with the result. */
export function readCompactRequest(body: unknown, circumstances: Circumstances): Ask {
  const fields = readBody(body);
  const { model, input = null, previous_response_id, instructions } = fields.values;
  const isEmpty = input === null || (Array.isArray(input) && input.length === 0);
  if (isPresent(fields, "model") && isEmpty && !isPresent(fields, "previous_response_id"))
    missing("input", " One of 'input' or 'previous_response_id' must be provided.");
  const asked = { model, input, previous_response_id, instructions, store: false };
  return { ...readRequest(asked, circumstances).ask, compacts: true };
}

/** The user's words as they were, and a summary of the rest: the input of a new chain. */
export function writeCompaction(heading: Heading, context: readonly Item[], answer: Answer, seal: Seal): string {
  const { key, createdAt } = heading;
  const said = context.filter((item) => item.type === "message" && item.role === "user");
  const output = [...said, ...answer.items].map((item, at) => ({ ...item, id: item.id ?? `msg_${key}_i${at}` }));
  const head = toText({ id: toResponseId(key), object: "response.compaction", created_at: toSeconds(createdAt) });
  // The wire has no null here, for an adapter that counts nothing.
  const { usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 } } = answer;
  const shown = output.map((item) => writeItem(item, seal));
  return `{${head},"output":[${shown.join(",")}],${toText({ usage: writeUsage(usage) })}}`;
}
