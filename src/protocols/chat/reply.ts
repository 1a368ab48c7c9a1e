/** Says an answer as a chat completion: whole, or as a stream of chunks. */
import { toWireError } from "../../core/errors.ts";
import type { Event, ItemDelta, OutputItem } from "../../core/event.ts";
import type { Extra, ToolCall } from "../../core/item.ts";
import type { About, Voice } from "../../core/ports.ts";
import type { Answer } from "../../core/turn.ts";
import { toSeconds } from "../time.ts";
import { toWireAnnotations } from "./annotations.ts";
import {
  betweenSections,
  fieldsOf,
  toCall,
  toCompletion,
  toCompletionId,
  toFinishReason,
  toFunctionCall,
  toLogprobs,
  toServed,
  toUsage,
} from "./completion.ts";
import type { Wants } from "./request.ts";

export function createVoice(wants: Wants): Voice {
  return {
    whole: (about, answer) => JSON.stringify(toCompletion(about, answer, wants)),
    stream: (about) => createSpeaker(about, wants),
  };
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
  /** The first call, whole, for a caller who was told of it in the form before tools. */
  let first: ToolCall | undefined;
  /** What stands around a piece of the arguments of the newest call. */
  let callOpen = "";
  let argumentsOpen = "";
  let argumentsClose = "";
  let section = 0;
  /** How much text is told, and how much of it stands before the part that is being told. */
  let length = 0;
  let partStart = 0;
  let part = 0;

  /** The first chunk alone names the role; a call that comes first stands in it. */
  function introduce(call = ""): string {
    introduced = true;
    const content = call === "" ? '""' : `null,${call}`;
    return `${open}{"role":"assistant","content":${content},"refusal":null}${close}`;
  }

  function startItem(item: OutputItem): string {
    section = 0;
    part = -1;
    // What only the other dialect knows has no place here, and nobody can have asked for it here.
    if (item.type === "other" || (item.type === "reasoning" && !wants.reasoning)) return "";
    if (item.type !== "tool-call") return introduced ? "" : introduce();
    const call = wants.functionCall && calls === 0 ? startFunctionCall(item) : startCall(item);
    calls += 1;
    return introduced ? `${open}{${call}}${close}` : introduce(call);
  }

  function startFunctionCall(item: ToolCall): string {
    callOpen = '"function_call":{';
    argumentsOpen = '"arguments":';
    argumentsClose = "}";
    return `"function_call":${JSON.stringify(toFunctionCall(item))}`;
  }

  function startCall(item: ToolCall): string {
    callOpen = `"tool_calls":[{"index":${calls},`;
    argumentsOpen = item.kind === "custom" ? '"custom":{"input":' : '"function":{"arguments":';
    argumentsClose = "}}]";
    const begun = JSON.stringify({ index: calls, ...toCall(item) });
    if (!wants.functionCall || calls !== 1 || first === undefined) return `"tool_calls":[${begun}]`;
    // A second call, which such a caller does not expect: from now on they are all told as in the whole answer.
    return `"tool_calls":[${JSON.stringify({ index: 0, ...toCall(first) })},${begun}]`;
  }

  function end(answer: Answer): string {
    if (answer.error !== undefined) return `data: ${JSON.stringify({ error: toWireError(answer.error) })}\n\n${done}`;
    // What served the answer is known at its end; readers that gather chunks keep the last word on it.
    const last = `${head}${JSON.stringify(toServed(answer.notes)).slice(1, -1)},"choices":[`;
    const reason = `${last}{"index":0,"delta":{},"logprobs":null,"finish_reason":"${toFinishReason(answer.finish, wants)}"${tail}`;
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

  /** What this dialect adds to a call that is told already; a piece without arguments is none to some readers. */
  function addExtra(extra: Extra | undefined): string {
    const added = fieldsOf(extra);
    if (added === undefined) return "";
    const fields = JSON.stringify(added).slice(1, -1);
    // A field may have been named and left without a value.
    if (fields === "") return "";
    return `${open}{${callOpen}${fields},${argumentsOpen}""${argumentsClose}}${close}`;
  }

  function add(delta: ItemDelta): string {
    switch (delta.kind) {
      case "text": {
        if (delta.part !== part) [part, partStart] = [delta.part, length];
        length += delta.text.length;
        const text = textOpen + JSON.stringify(delta.text);
        if (delta.logprobs === undefined) return text + textClose;
        return `${text}},"logprobs":${JSON.stringify(toLogprobs(delta.logprobs))},"finish_reason":null${tail}`;
      }
      case "refusal":
        return `${open}{"refusal":${JSON.stringify(delta.text)}}${close}`;
      case "arguments":
        return `${open}{${callOpen}${argumentsOpen}${JSON.stringify(delta.text)}${argumentsClose}}${close}`;
      case "annotation": {
        const told = delta.annotation === undefined ? [] : toWireAnnotations([delta.annotation], partStart);
        return told.length === 0 ? "" : `${open}{"annotations":${JSON.stringify(told)}}${close}`;
      }
      case "extra":
        return addExtra(delta.extra);
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
      case "item-end":
        if (event.item.type === "tool-call") first ??= event.item;
        return "";
      case "turn-queued":
      case "turn-start":
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
