/** Tells a turn to its caller as a chat completion: whole, or chunk by chunk. */
import { toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import { type Item, type ToolCall } from "../../core/item.ts";
import { type Extra, fieldsOf } from "../../core/settings.ts";
import type { Answer } from "../../core/turn.ts";
import type { Voice } from "../wire.ts";
import {
  betweenSections,
  toAnnotations,
  toCall,
  toFinishReason,
  toFunctionCall,
  toLogprobs,
  toServed,
  toUsage,
  type Wants,
  writeCompletion,
} from "./completion.ts";

export function createVoice(wants: Wants): Voice {
  return {
    whole: (heading, answer) => writeCompletion(heading, answer, wants),
    stream: (heading) => createSpeaker(heading, wants),
  };
}

/** The JSON around what is added to a call: fields follow `open`, a piece of its arguments is between the other two. */
type CallFrame = readonly [open: string, before: string, after: string];

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
  let call: CallFrame | undefined;
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
    if (item.type === "tool-call") return introduce(startCall(item));
    // What only another dialect has is not for callers of this one.
    return item.type === "message" || (item.type === "reasoning" && wants.reasoning) ? introduce("") : "";
  }

  /** A caller of functions takes one call at a time. */
  function startCall(item: ToolCall): string {
    const index = calls++;
    if (wants.functionCall) {
      call = index === 0 ? ['"function_call":{', '"arguments":', "}"] : undefined;
      return call === undefined ? "" : `"function_call":${JSON.stringify(toFunctionCall(item))}`;
    }
    const before = item.kind === "custom" ? '"custom":{"input":' : '"function":{"arguments":';
    call = [`"tool_calls":[{"index":${index},`, before, "}}]"];
    return `"tool_calls":[${JSON.stringify({ index, ...toCall(item) })}]`;
  }

  function addToCall(fields: string, text: string): string {
    if (call === undefined) return "";
    const [open, before, after] = call;
    return chunk(open + fields + before + JSON.stringify(text) + after);
  }

  function add(delta: ItemDelta): string {
    switch (delta.kind) {
      case "text": {
        const text = textOpen + JSON.stringify(delta.text);
        if (delta.logprobs === undefined) return text + close;
        return `${text}},"logprobs":${JSON.stringify(toLogprobs(delta.logprobs))},"finish_reason":null${tail}`;
      }
      case "arguments":
        return addToCall("", delta.text);
      case "extra": {
        const fields = fieldsIn(delta.extra);
        return fields === "" ? "" : addToCall(`${fields},`, "");
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

/** What this dialect adds to something, as JSON without braces. */
function fieldsIn(extra: Extra | undefined): string {
  const fields = fieldsOf(extra, "chat");
  return fields === undefined ? "" : JSON.stringify(fields).slice(1, -1);
}
