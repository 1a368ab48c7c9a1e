/** The body of a chat completion request: read into what its caller wants, and written for a server. */
import type { Tell } from "../../core/adapter.ts";
import { type ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Ask, Turn } from "../../core/turn.ts";
import { readStreamOptions } from "../common.ts";
import {
  type Fields,
  invalid,
  isObject,
  readBody,
  readBoolean,
  readString,
  readStrings,
  requireName,
  unsupported,
} from "../fields.ts";
import type { Circumstances, Habits, Request } from "../wire.ts";
import { createVoice } from "./chunks.ts";
import { usesFunctions, withTools } from "./functions.ts";
import { readMessages } from "./messages.ts";
import { readSettings, writeSettings } from "./settings.ts";
import { writeMessages } from "./talk.ts";

export function readRequest(body: unknown, { exposesReasoning }: Circumstances): Request {
  const sent = readBody(body);
  refuseUnanswerable(sent);
  const fields = withTools(sent);
  const stream = readBoolean(fields, "stream") ?? false;
  const store = readBoolean(fields, "store");
  const ask: Ask = {
    model: requireName(fields, "model"),
    items: readMessages(fields),
    itemsParam: "messages",
    settings: readSettings(fields),
    stream,
    user: readString(fields, "user") || undefined,
    keep: store === undefined ? "in-session" : store ? "yes" : "no",
  };
  checkCount(ask.items.length, "messages", "too_many_messages");
  checkCount(ask.settings.tools.length, "tools", "too_many_tools");
  const voice = createVoice({
    usage: readUsageOption(fields, stream),
    reasoning: asksForReasoning(fields) ?? exposesReasoning,
    functionCall: usesFunctions(sent),
  });
  return { ask, voice };
}

export function writeRequest(turn: Turn, habits: Habits, tell: Tell): string {
  return JSON.stringify({
    model: turn.model,
    ...writeSettings(turn.settings, habits, tell),
    messages: writeMessages(turn, habits, tell),
    ...(turn.stream && { stream: true, stream_options: { include_usage: true } }),
  });
}

/** What would change the answer and cannot be honoured is refused rather than dropped. */
function refuseUnanswerable(fields: Fields): void {
  if (readStrings(fields, "modalities")?.includes("audio"))
    unsupported("modalities", "Audio answers are not available; ask for 'text'.");
  if (readString(fields, "previous_response_id") !== undefined) {
    const why = "Only /v1/responses can continue a response; here 'user' or a header names the session.";
    unsupported("previous_response_id", why);
  }
}

const maxCount = 4_096;

function checkCount(count: number, param: string, code: ErrorCode): void {
  if (count <= maxCount) return;
  throw new GatewayError(code, `'${param}' comes to ${count}; at most ${maxCount} are allowed.`, { param });
}

function readUsageOption(fields: Fields, stream: boolean): boolean {
  const options = readStreamOptions(fields);
  if (options === undefined) return false;
  if (!stream) {
    const why = "is only allowed when 'stream' is enabled. Set 'stream' to true or leave it out.";
    invalid("stream_options", `The 'stream_options' parameter ${why}`);
  }
  return readBoolean(options, "include_usage") ?? false;
}

/** Live chat completions hide reasoning; clients of other servers use these two fields to ask for it. */
function asksForReasoning({ values }: Fields): boolean | undefined {
  const { include_reasoning: include, reasoning } = values;
  if (typeof include === "boolean") return include;
  return isObject(reasoning) ? reasoning["exclude"] !== true : undefined;
}
