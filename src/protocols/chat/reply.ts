/** Says an answer as a chat completion: whole, or as a stream of chunks. */
import { toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta, OutputItem } from "../../core/event.ts";
import { textOf } from "../../core/item.ts";
import type { About, Voice } from "../../core/ports.ts";
import type { Answer, Finish, Notes, Usage } from "../../core/turn.ts";
import type { Wants } from "./request.ts";

export function createVoice(wants: Wants): Voice {
  return {
    whole: (about, answer) => JSON.stringify(toCompletion(about, answer, wants)),
    stream: (about) => createSpeaker(about, wants),
  };
}

function toCompletion(about: About, answer: Answer, wants: Wants): unknown {
  const said = collect(answer.items);
  const calls = answer.items.flatMap((item) => (item.type === "tool-call" ? [toCall(item)] : []));
  const silent = said.text === "" && (calls.length > 0 || said.refusal !== "");
  return {
    id: toCompletionId(about),
    object: "chat.completion",
    created: toSeconds(about.createdAt),
    model: about.model,
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: silent ? null : said.text,
          refusal: said.refusal === "" ? null : said.refusal,
          annotations: [],
          ...(wants.reasoning && said.reasoning !== "" && { reasoning_content: said.reasoning }),
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        logprobs: said.logprobs === undefined ? null : toLogprobs(said.logprobs),
        finish_reason: finishReasons[answer.finish],
      },
    ],
    ...(answer.usage && { usage: toUsage(answer.usage) }),
    ...toServed(answer.notes),
  };
}

function collect(items: readonly OutputItem[]) {
  let text = "";
  let refusal = "";
  let reasoning = "";
  let logprobs: unknown[] | undefined;
  for (const item of items) {
    if (item.type === "reasoning") reasoning += item.text + item.summary.join(betweenSections);
    if (item.type !== "message") continue;
    text += textOf(item.content);
    if (typeof item.content === "string") continue;
    for (const part of item.content) {
      if (part.type === "refusal") refusal += part.text;
      if (part.type === "text") for (const entry of part.logprobs ?? []) (logprobs ??= []).push(entry);
    }
  }
  return { text, refusal, reasoning, logprobs };
}

/**
 * Turns events into chunks. All chunks of a stream share their beginning and their end, so a chunk is a concatenation:
 * six times cheaper than stringifying an object for every token.
 */
function createSpeaker(about: About, wants: Wants): (events: readonly Event[]) => string {
  const head =
    `data: {"id":${JSON.stringify(toCompletionId(about))},"object":"chat.completion.chunk",` +
    `"created":${toSeconds(about.createdAt)},"model":${JSON.stringify(about.model)},`;
  const open = `${head}"system_fingerprint":null,"choices":[{"index":0,"delta":`;
  const tail = wants.usage ? `}],"usage":null}\n\n` : "}]}\n\n";
  const close = `,"logprobs":null,"finish_reason":null${tail}`;
  const textOpen = `${open}{"content":`;
  const textClose = `}${close}`;
  let introduced = false;
  let calls = 0;
  let argumentsOpen = "";
  let section = 0;

  /** The first chunk alone names the role; a tool call that comes first stands in it. */
  function introduce(calls = ""): string {
    introduced = true;
    const content = calls === "" ? '""' : `null,"tool_calls":[${calls}]`;
    return `${open}{"role":"assistant","content":${content},"refusal":null}${close}`;
  }

  function startItem(item: OutputItem): string {
    section = 0;
    if (item.type === "reasoning" && !wants.reasoning) return "";
    if (item.type !== "tool-call") return introduced ? "" : introduce();
    argumentsOpen = item.kind === "custom" ? '"custom":{"input":' : '"function":{"arguments":';
    const call = JSON.stringify({ index: calls++, ...toCall(item) });
    return introduced ? `${open}{"tool_calls":[${call}]}${close}` : introduce(call);
  }

  function end(answer: Answer): string {
    if (answer.error !== undefined) return `data: ${JSON.stringify({ error: toWireError(answer.error) })}\n\n${done}`;
    // What served the answer is known at its end; readers that gather chunks keep the last word on it.
    const last = `${head}${JSON.stringify(toServed(answer.notes)).slice(1, -1)},"choices":[`;
    const reason = `${last}{"index":0,"delta":{},"logprobs":null,"finish_reason":"${finishReasons[answer.finish]}"${tail}`;
    const usage = wants.usage && answer.usage ? `${last}],"usage":${JSON.stringify(toUsage(answer.usage))}}\n\n` : "";
    return (introduced ? "" : introduce()) + reason + usage + done;
  }

  /** The sections of a summary stand apart, as in the whole answer. */
  function reason(delta: ItemDelta): string {
    if (!wants.reasoning) return "";
    const isNext = delta.kind === "summary" && delta.part !== section;
    if (isNext) section = delta.part;
    return `${open}{"reasoning_content":${JSON.stringify(isNext ? betweenSections + delta.text : delta.text)}}${close}`;
  }

  function add(delta: ItemDelta): string {
    switch (delta.kind) {
      case "text": {
        const text = textOpen + JSON.stringify(delta.text);
        if (delta.logprobs === undefined) return text + textClose;
        return `${text}},"logprobs":${JSON.stringify(toLogprobs(delta.logprobs))},"finish_reason":null${tail}`;
      }
      case "refusal":
        return `${open}{"refusal":${JSON.stringify(delta.text)}}${close}`;
      case "arguments":
        return `${open}{"tool_calls":[{"index":${calls - 1},${argumentsOpen}${JSON.stringify(delta.text)}}}]}${close}`;
      case "reasoning":
      case "summary":
        return reason(delta);
    }
  }

  function say(event: Event): string {
    switch (event.type) {
      case "item-start":
        return startItem(event.item);
      case "item-delta":
        return add(event);
      case "turn-end":
        return end(event.answer);
      case "turn-queued":
      case "turn-start":
      case "item-end":
        return "";
    }
  }

  return (events) => {
    let text = "";
    for (const event of events) text += say(event);
    return text;
  };
}

const done = "data: [DONE]\n\n";
const betweenSections = "\n\n";

const finishReasons: Readonly<Record<Finish, string>> = {
  stop: "stop",
  length: "length",
  "content-filter": "content_filter",
  "tool-calls": "tool_calls",
};

function toCall(item: Extract<OutputItem, { type: "tool-call" }>) {
  const { callId: id, name, arguments: written } = item;
  return item.kind === "custom"
    ? { id, type: "custom", custom: { name, input: written } }
    : { id, type: "function", function: { name, arguments: written } };
}

function toLogprobs(content: readonly unknown[]) {
  return { content, refusal: null };
}

function toServed(notes: Notes) {
  return { service_tier: notes.serviceTier ?? "default", system_fingerprint: notes.fingerprint ?? null };
}

function toUsage(usage: Usage) {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoningTokens,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

/** `resp_…` under the name that this dialect gives it. */
function toCompletionId(about: About): string {
  return about.id.replace(/^resp_/, "chatcmpl-");
}

function toSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
