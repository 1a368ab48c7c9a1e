/** Tells a turn to its caller: as one chat completion, or chunk by chunk. */
import { toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Annotation, Item, ToolCall } from "../../core/item.ts";
import { type Extra, fieldsOf, gather } from "../../core/settings.ts";
import type { Answer, Finish, Notes, Usage } from "../../core/turn.ts";
import { isObject, type Said } from "../fields.ts";
import type { Voice } from "../wire.ts";

/** What the caller wants besides the answer itself. */
export interface Wants {
  /** Usage as a last chunk of the stream. */
  readonly usage: boolean;
  readonly reasoning: boolean;
  /** A call in the form before tools, of which there is one at a time. */
  readonly functionCall: boolean;
}

export function createVoice(wants: Wants): Voice {
  return {
    whole: (heading, answer) => writeCompletion(heading, answer, wants),
    stream: (heading) => createSpeaker(heading, wants),
  };
}

function writeCompletion({ key, createdAt, model }: Heading, answer: Answer, wants: Wants): string {
  const { notes, usage } = answer;
  const { message, logprobs } = toMessage(answer, wants);
  const finish_reason = toFinishReason(answer.finish, wants);
  return JSON.stringify({
    ...fieldsOf(notes.extra, "chat"),
    id: `chatcmpl-${key}`,
    object: "chat.completion",
    created: Math.floor(createdAt / 1000),
    model,
    choices: [{ index: 0, message, logprobs: logprobs.length > 0 ? toLogprobs(logprobs) : null, finish_reason }],
    usage: usage && toUsage(usage, notes),
    ...toServed(notes),
    // Typed clients take null here, and some want it; in a chunk they refuse it.
    system_fingerprint: notes.fingerprint ?? null,
  });
}

function toMessage({ items, extra }: Answer, wants: Wants) {
  let [text, refusal, reasoning] = ["", "", ""];
  let signature: Extra | undefined;
  const logprobs: unknown[] = [];
  const annotations: Said[] = [];
  const calls: ToolCall[] = [];
  for (const item of items) {
    if (item.type === "tool-call") calls.push(item);
    if (item.type === "reasoning" && wants.reasoning) {
      reasoning += item.text + item.summary.join(betweenSections);
      if (item.extra?.dialect === "chat") signature = gather(signature, item.extra);
    }
    if (item.type !== "message") continue;
    const parts = typeof item.content === "string" ? [{ type: "text", text: item.content } as const] : item.content;
    for (const part of parts) {
      if (part.type === "refusal") refusal += part.text;
      if (part.type !== "text") continue;
      for (const entry of part.logprobs ?? []) logprobs.push(entry);
      for (const annotation of toAnnotations(part.annotations)) annotations.push(annotation);
      text += part.text;
    }
  }
  const [first] = calls;
  const message = {
    ...fieldsOf(signature, "chat"),
    ...fieldsOf(extra, "chat"),
    role: "assistant",
    content: text === "" && (first !== undefined || refusal !== "") ? null : text,
    refusal: refusal || null,
    annotations,
    reasoning_content: reasoning || undefined,
    function_call: wants.functionCall && first !== undefined ? toFunctionCall(first) : undefined,
    tool_calls: wants.functionCall || first === undefined ? undefined : calls.map(toCall),
  };
  return { message, logprobs };
}

/** Chunks are mostly alike, so they are concatenated: six times cheaper than stringifying an object for every token. */
function createSpeaker({ key, createdAt, model }: Heading, wants: Wants): (events: readonly Event[]) => string {
  const head =
    `data: {"id":"chatcmpl-${key}","object":"chat.completion.chunk","created":${Math.floor(createdAt / 1000)},` +
    `"model":${JSON.stringify(model)},`;
  const tail = wants.usage ? `}],"usage":null}\n\n` : "}]}\n\n";
  const open = `${head}"choices":[{"index":0,"delta":{`;
  const close = `},"logprobs":null,"finish_reason":null${tail}`;
  const textOpen = `${open}"content":`;
  let isIntroduced = false;
  let calls = 0;
  /** The JSON around a piece of the open call's arguments. */
  let [callOpen, callClose] = ["", ""];
  /** Of a summary. */
  let section = 0;

  const chunk = (delta: string): string => (delta === "" ? "" : open + delta + close);

  /** Only the first chunk has the role; a call that comes first is part of it. */
  function introduce(begun: string): string {
    if (isIntroduced) return chunk(begun);
    isIntroduced = true;
    return chunk(`"role":"assistant","content":${begun === "" ? '""' : `null,${begun}`},"refusal":null`);
  }

  function start(item: Item): string {
    section = 0;
    if (item.type === "tool-call") return introduce(startCall(item, calls++));
    // What only another dialect has is not for callers of this one.
    return item.type === "message" || (item.type === "reasoning" && wants.reasoning) ? introduce("") : "";
  }

  function startCall(item: ToolCall, index: number): string {
    if (wants.functionCall) {
      [callOpen, callClose] = index === 0 ? ['"function_call":{"arguments":', "}"] : ["", ""];
      return index === 0 ? `"function_call":${JSON.stringify(toFunctionCall(item))}` : "";
    }
    const before = item.kind === "custom" ? '"custom":{"input":' : '"function":{"arguments":';
    [callOpen, callClose] = [`"tool_calls":[{"index":${index},${before}`, "}}]"];
    return `"tool_calls":[${JSON.stringify({ index, ...toCall(item) })}]`;
  }

  function add(delta: ItemDelta): string {
    switch (delta.kind) {
      case "text": {
        const text = textOpen + JSON.stringify(delta.text);
        if (delta.logprobs === undefined) return text + close;
        return `${text}},"logprobs":${JSON.stringify(toLogprobs(delta.logprobs))},"finish_reason":null${tail}`;
      }
      case "arguments":
        return callOpen === "" ? "" : chunk(callOpen + JSON.stringify(delta.text) + callClose);
      case "extra": {
        const fields = fieldsIn(delta.extra);
        return fields === "" || wants.functionCall ? "" : chunk(`"tool_calls":[{"index":${calls - 1},${fields}}]`);
      }
      case "reasoning":
      case "summary": {
        if (!wants.reasoning) return "";
        const isNext = delta.kind === "summary" && delta.part !== section;
        if (isNext) section = delta.part;
        return chunk(`"reasoning_content":${JSON.stringify(isNext ? betweenSections + delta.text : delta.text)}`);
      }
      case "refusal":
        return chunk(`"refusal":${JSON.stringify(delta.text)}`);
      case "annotation": {
        const told = toAnnotations(delta.annotation && [delta.annotation]);
        return told.length === 0 ? "" : chunk(`"annotations":${JSON.stringify(told)}`);
      }
    }
  }

  function end({ error, notes, usage, finish, extra }: Answer): string {
    if (error !== undefined) return `data: ${JSON.stringify({ error: toWireError(error) })}\n\n${done}`;
    // What served the answer is known at its end; readers that collect chunks keep the last value.
    const served = { ...fieldsOf(notes.extra, "chat"), usage: undefined, ...toServed(notes) };
    const last = head + JSON.stringify(served).slice(1, -1);
    const reason = `{"index":0,"delta":{},"logprobs":null,"finish_reason":"${toFinishReason(finish, wants)}"`;
    const said = `${introduce("")}${chunk(fieldsIn(extra))}${last},"choices":[${reason}${tail}`;
    if (!wants.usage || usage === undefined) return said + done;
    return `${said}${last},"choices":[],"usage":${JSON.stringify(toUsage(usage, notes))}}\n\n${done}`;
  }

  function say(event: Event): string {
    switch (event.type) {
      case "item-delta":
        return add(event);
      case "item-start":
        return start(event.item);
      case "item-end":
        return event.item.type === "reasoning" && wants.reasoning ? chunk(fieldsIn(event.item.extra)) : "";
      case "turn-end":
        return end(event.answer);
      case "turn-queued":
      case "turn-start":
      case "turn-interrupted":
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

/** Between the sections of a summary. */
const betweenSections = "\n\n";

/** What this dialect adds to something, as JSON without braces. */
function fieldsIn(extra: Extra | undefined): string {
  const fields = fieldsOf(extra, "chat");
  return fields === undefined ? "" : JSON.stringify(fields).slice(1, -1);
}

/** A call in the form before tools. */
function toFunctionCall({ name, arguments: written }: ToolCall): Said {
  return { name, arguments: written };
}

export function toCall({ kind, callId: id, name, arguments: written, extra }: ToolCall): Said {
  const called =
    kind === "custom"
      ? { type: "custom", custom: { name, input: written } }
      : { type: "function", function: { name, arguments: written } };
  return { ...fieldsOf(extra, "chat"), id, ...called };
}

/** Clients that validate refuse a whole answer for a note of another type. */
function toAnnotations(told: readonly Annotation[] = []): readonly Said[] {
  return told.flatMap(({ type, fields: { start_index, end_index, title, url } }) =>
    type === "url_citation" ? { type, url_citation: { start_index, end_index, title, url } } : [],
  );
}

function toLogprobs(content: readonly unknown[]): Said {
  return { content, refusal: null };
}

/** Why the model stopped, in the wire's words. */
function toFinishReason(finish: Finish, { functionCall }: Wants): string {
  return functionCall && finish === "tool-calls" ? "function_call" : finish.replace("-", "_");
}

/** What served the answer, as far as it is known. */
function toServed({ serviceTier, fingerprint }: Notes): Said {
  return { service_tier: serviceTier ?? "default", system_fingerprint: fingerprint };
}

/** The tokens, and what else its server said of them, such as their cost. */
function toUsage(usage: Usage, { extra }: Notes): Said {
  const added = fieldsOf(extra, "chat")?.["usage"];
  const { inputTokens, cachedTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  return {
    ...(isObject(added) && added),
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoningTokens, ...unused },
  };
}

const unused = { audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 };
