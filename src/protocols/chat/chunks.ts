/** One choice of a chat completion, chunk by chunk. */
import type { ItemDelta, ItemEvent, OutputItem } from "../../core/event.ts";
import { type Extra, fieldsOf, type ToolCall } from "../../core/item.ts";
import type { Finish } from "../../core/turn.ts";
import { toWireAnnotations } from "./annotations.ts";
import { betweenSections, toCall, toFinishReason, toFunctionCall, toLogprobs } from "./completion.ts";
import type { Wants } from "./request.ts";

export interface ChoiceSpeaker {
  say(event: ItemEvent): string;
  /** Its last chunk; `last` has what is known only at the end. */
  end(last: string, finish: Finish): string;
}

/** What all chunks of a stream begin and end with. */
interface Surroundings {
  readonly head: string;
  readonly tail: string;
}

/** Chunks are mostly alike, so they are concatenated: six times cheaper than stringifying an object for every token. */
export function createChoiceSpeaker(index: number, { head, tail }: Surroundings, wants: Wants): ChoiceSpeaker {
  const open = `${head}"choices":[{"index":${index},"delta":`;
  const close = `,"logprobs":null,"finish_reason":null${tail}`;
  const textOpen = `${open}{"content":`;
  const textClose = `}${close}`;
  let introduced = false;
  let calls = 0;
  /** The first call, complete, for a caller who got it in the form before tools. */
  let first: ToolCall | undefined;
  /** The JSON around a piece of the newest call's arguments. */
  let callOpen = "";
  let argumentsOpen = "";
  let argumentsClose = "";
  let section = 0;
  /** The length of the text so far, and of what precedes the current part. */
  let length = 0;
  let partStart = 0;
  let part = 0;

  /** Only the first chunk has the role; a call that comes first is part of it. */
  function introduce(call = ""): string {
    introduced = true;
    const content = call === "" ? '""' : `null,${call}`;
    return `${open}{"role":"assistant","content":${content},"refusal":null}${close}`;
  }

  function startItem(item: OutputItem): string {
    section = 0;
    part = -1;
    // Items of the other dialect have no place here, and nobody can have asked for them here.
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
    // Such a caller does not expect a second call: from now on all are sent as in the whole answer.
    return `"tool_calls":[${JSON.stringify({ index: 0, ...toCall(first) })},${begun}]`;
  }

  function end(last: string, finish: Finish): string {
    const reason = `${last}{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${toFinishReason(finish, wants)}"${tail}`;
    return (introduced ? "" : introduce()) + reason;
  }

  /** Sections of a summary are separated as in the whole answer. */
  function reason(delta: ItemDelta): string {
    if (!wants.reasoning) return "";
    const isNext = delta.kind === "summary" && delta.part !== section;
    if (isNext) section = delta.part;
    return `${open}{"reasoning_content":${JSON.stringify(isNext ? betweenSections + delta.text : delta.text)}}${close}`;
  }

  /** Fields that this dialect adds to a call already sent; some readers ignore a piece without arguments. */
  function addExtra(extra: Extra | undefined): string {
    const added = fieldsOf(extra, "chat");
    if (added === undefined) return "";
    const fields = JSON.stringify(added).slice(1, -1);
    // A field may be present without a value.
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

  function say(event: ItemEvent): string {
    switch (event.type) {
      case "item-start":
        return startItem(event.item);
      case "item-delta":
        return add(event);
      case "item-end":
        if (event.item.type === "tool-call") first ??= event.item;
        return "";
    }
  }

  return { say, end };
}
