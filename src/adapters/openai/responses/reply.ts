/** Reads a responses answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Finish } from "../../../core/turn.ts";
import { brokenOff } from "../../failures.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, countAt, listAt, objectAt, textAt } from "../../json.ts";
import { readAnnotation } from "../annotations.ts";
import { errorIn } from "../failure.ts";
import { requireJson, toArgumentsText } from "../json.ts";
import { readLogprobs } from "../logprobs.ts";
import { type AnswerReader, type ReplyReader, type Say, createStreamReader, requireObject } from "../stream.ts";
import { readUsage } from "../usage.ts";
import { createItemReader } from "./item-reader.ts";

/** Reads a stream. */
export function createReplyReader(scrub: Scrub): ReplyReader {
  return createStreamReader((say) => createAnswerReader(say, scrub), scrub);
}

/** Reads an answer that came whole, as the end of a stream of which nothing was sent before. */
export function readWholeReply(body: string, scrub: Scrub): readonly Delta[] {
  const deltas: Delta[] = [];
  const response = requireObject(requireJson(body, scrub));
  createAnswerReader((delta) => deltas.push(delta), scrub).accept({ type: endOf(response), response });
  return deltas;
}

function createAnswerReader(say: Say, scrub: Scrub): AnswerReader {
  const items = createItemReader(say);
  let isOver = false;

  /** `shortage`: why the response is incomplete. */
  function endAnswer(response: JsonObject, shortage?: Finish): void {
    items.endAll(response);
    const serviceTier = textAt(response, "service_tier");
    if (serviceTier !== undefined) say({ type: "notes", notes: { serviceTier } });
    // Nearly all other fields repeat the request.
    const moderation = objectAt(response, "moderation");
    if (moderation !== undefined)
      say({ type: "notes", notes: { extra: { dialect: "responses", fields: { moderation } } } });
    const usage = objectAt(response, "usage");
    if (usage !== undefined) say({ type: "usage", usage: readUsage(usage, "input", "output") });
    say({ type: "finish", reason: shortage ?? (items.hasCalls() ? "tool-calls" : "stop") });
    isOver = true;
  }

  return {
    accept(event) {
      const index = countAt(event, "output_index");
      const part = countAt(event, "content_index");
      const piece = textAt(event, "delta") ?? "";
      const item = objectAt(event, "item") ?? nothing;
      const response = objectAt(event, "response") ?? nothing;
      switch (event["type"]) {
        case "response.output_text.delta":
          return items.addText(index, part, piece, readLogprobs(listAt(event, "logprobs")));
        case "response.output_text.annotation.added": {
          const note = readAnnotation(event["annotation"]);
          if (note !== undefined) items.addNote(index, part, note);
          return;
        }
        case "response.refusal.delta":
          return items.addRefusal(index, piece);
        case "response.reasoning_text.delta":
          return items.addReasoning(index, piece);
        case "response.reasoning_summary_text.delta":
          return items.addReasoning(index, piece, countAt(event, "summary_index"));
        case "response.function_call_arguments.delta":
        case "response.custom_tool_call_input.delta":
          return items.addArguments(index, piece);
        case "response.function_call_arguments.done":
          return items.completeArguments(index, toArgumentsText(event["arguments"]));
        case "response.custom_tool_call_input.done":
          return items.completeArguments(index, toArgumentsText(event["input"]));
        case "response.output_item.added":
          return items.begin(item, index);
        case "response.output_item.done":
          return items.end(item, index);
        case "response.completed":
          return endAnswer(response);
        case "response.incomplete":
          return endAnswer(response, shortageOf(response));
        case "response.failed":
          throw toReportedFailure(errorIn(response) ?? {}, scrub);
        case "error":
          throw toReportedFailure({ ...event, ...objectAt(event, "error") }, scrub);
        default: {
          // Others, such as a hosted tool's progress, tell nothing that its finished item does not. But servers made for
          // another wire report failures in its form.
          const error = errorIn(event);
          if (error !== undefined) throw toReportedFailure(error, scrub);
        }
      }
    },
    stage: () => (isOver ? "over" : "open"),
    end() {
      if (!isOver) throw brokenOff();
    },
  };
}

const nothing: JsonObject = {};

/** Why a response is incomplete; an unknown reason counts as a limit. */
function shortageOf(response: JsonObject): Finish {
  const reason = objectAt(response, "incomplete_details")?.["reason"];
  return reason === "content_filter" ? "content-filter" : "length";
}

/** The event that would have brought this response. */
function endOf(response: JsonObject): string {
  const status = response["status"];
  if (status === "failed" || errorIn(response) !== undefined) return "response.failed";
  if (status === "incomplete") return "response.incomplete";
  if (!unfinished.has(status) && listAt(response, "output") !== undefined) return "response.completed";
  throw new GatewayError("adapter_protocol", "The upstream's answer contains no finished response.");
}

const unfinished: ReadonlySet<unknown> = new Set(["queued", "in_progress", "cancelled"]);
