/** Bounds what an adapter may say in one answer, because all of it is held in memory until stored. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";
import type { Extra } from "../item.ts";
import type { Lane } from "./lane.ts";

/** The failure of a lane that said more. */
export function answerTooLong(lane: Pick<Lane, "name" | "maxAnswerCharacters">): GatewayError {
  return new GatewayError(
    "adapter_protocol",
    `The adapter's answer is longer than ${lane.maxAnswerCharacters} characters (gateway.adapters.${lane.name}.max_answer_characters).`,
    { wireCode: "adapter_answer_too_large" },
  );
}

/** Roughly what a delta takes in memory. */
export function sizeOf(delta: Delta): number {
  switch (delta.type) {
    case "text":
      return overhead + delta.text.length + (delta.logprobs?.length ?? 0) * logprobSize + sizeOfExtra(delta.extra);
    case "refusal":
      return overhead + delta.text.length + sizeOfExtra(delta.extra);
    case "reasoning":
    case "tool-arguments":
      return overhead + delta.text.length;
    case "tool-call": {
      const { name, callId = "", group = "", extra } = delta;
      return callSize + name.length + callId.length + group.length + sizeOfExtra(extra);
    }
    case "tool-extra":
    case "message-extra":
    case "reasoning-extra":
    case "message-end":
    case "other":
      return overhead + sizeOfExtra(delta.extra);
    case "reasoning-seal":
      return overhead + delta.encrypted.length;
    case "annotation":
      return overhead + JSON.stringify(delta.annotation).length;
    case "compaction":
      return overhead + delta.summary.length;
    case "notes":
      return overhead + sizeOfExtra(delta.notes.extra);
    default:
      return overhead;
  }
}

function sizeOfExtra(extra: Extra | undefined): number {
  return extra === undefined ? 0 : JSON.stringify(extra.fields).length;
}

const overhead = 32;
const callSize = 512;
/** A token's log probabilities, with some alternatives. */
const logprobSize = 512;
