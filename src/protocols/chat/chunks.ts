/** One choice of a chat completion, chunk by chunk. */
import type { ItemDelta, ItemEvent, OutputItem } from "../../core/event.ts";
import type { Extra, ToolCall } from "../../core/item.ts";
import type { Finish } from "../../core/turn.ts";
import { toWireAnnotations } from "./annotations.ts";
import { addedTo, betweenSections, toCall, toFinishReason, toFunctionCall, toLogprobs } from "./completion.ts";
import type { Wants } from "./request.ts";

export interface ChoiceSpeaker {
  say(event: ItemEvent): string;
  /** Its last chunk; `last` has what is known only at the end, and `extra` what this dialect adds to the message. */
  end(last: string, finish: Finish, extra: Extra | undefined): string;
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
  let call: CallFrame = functionCall;
  let section = 0;
  /** The length of the text so far, and of what precedes the current part. */
  let length = 0;
  let partStart = 0;
  let part = 0;

  function chunk(delta: string): string {
    return `${open}{${delta}}${close}`;
  }

  /** Only the first chunk has the role; a call that comes first is part of it. */
  function introduce(begun = ""): string {
    introduced = true;
    return chunk(`"role":"assistant","content":${begun === "" ? '""' : `null,${begun}`},"refusal":null`);
  }

  function startItem(item: OutputItem): string {
    section = 0;
    part = -1;
    // Items of the other dialect have no place here, and nobody can have asked for them here.
    if (item.type === "other" || (item.type === "reasoning" && !wants.reasoning)) return "";
    if (item.type !== "tool-call") return introduced ? "" : introduce();
    const begun = startCall(item);
    return introduced ? chunk(begun) : introduce(begun);
  }

  function startCall(item: ToolCall): string {
    const number = calls++;
    const isFunctionCall = wants.functionCall && number === 0;
    call = isFunctionCall ? functionCall : toolCall(number, item);
    if (isFunctionCall) return `"function_call":${JSON.stringify(toFunctionCall(item))}`;
    // A caller of functions expects no second call: from now on all are sent as in the whole answer.
    const before = wants.functionCall && number === 1 ? first : undefined;
    const begun = [...(before ? [{ index: 0, ...toCall(before) }] : []), { index: number, ...toCall(item) }];
    return `"tool_calls":${JSON.stringify(begun)}`;
  }

  function end(last: string, finish: Finish, extra: Extra | undefined): string {
    const reason = `${last}{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${toFinishReason(finish, wants)}"${tail}`;
    return (introduced ? "" : introduce()) + addFields(extra) + reason;
  }

  /** Sections of a summary are separated as in the whole answer. */
  function reason(delta: ItemDelta): string {
    if (!wants.reasoning) return "";
    const isNext = delta.kind === "summary" && delta.part !== section;
    if (isNext) section = delta.part;
    return chunk(`"reasoning_content":${JSON.stringify(isNext ? betweenSections + delta.text : delta.text)}`);
  }

  /** Fields that this dialect adds to the message. */
  function addFields(extra: Extra | undefined): string {
    const fields = JSON.stringify(addedTo("message", extra)).slice(1, -1);
    return fields === "" ? "" : chunk(fields);
  }

  /** Fields that this dialect adds to a call already sent; some readers ignore a piece without arguments. */
  function addExtra(extra: Extra | undefined): string {
    // A field may be present without a value.
    const fields = JSON.stringify(addedTo("call", extra)).slice(1, -1);
    return fields === "" ? "" : chunk(`${call.open}${fields},${call.before}""${call.after}`);
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
        return chunk(`"refusal":${JSON.stringify(delta.text)}`);
      case "arguments":
        return chunk(call.open + call.before + JSON.stringify(delta.text) + call.after);
      case "annotation": {
        const told = delta.annotation === undefined ? [] : toWireAnnotations([delta.annotation], partStart);
        return told.length === 0 ? "" : chunk(`"annotations":${JSON.stringify(told)}`);
      }
      case "extra":
        return addExtra(delta.extra);
      case "reasoning":
      case "summary":
        return reason(delta);
    }
  }

  function endItem(item: OutputItem): string {
    if (item.type === "tool-call") first ??= item;
    return item.type === "reasoning" && wants.reasoning ? addFields(item.extra) : "";
  }

  function say(event: ItemEvent): string {
    switch (event.type) {
      case "item-start":
        return startItem(event.item);
      case "item-delta":
        return add(event);
      case "item-end":
        return endItem(event.item);
    }
  }

  return { say, end };
}

/** The JSON around what is added to a call: fields follow `open`, a piece of its arguments is between the other two. */
interface CallFrame {
  readonly open: string;
  readonly before: string;
  readonly after: string;
}

/** The form before tools. */
const functionCall: CallFrame = { open: '"function_call":{', before: '"arguments":', after: "}" };

function toolCall(number: number, { kind }: ToolCall): CallFrame {
  const before = kind === "custom" ? '"custom":{"input":' : '"function":{"arguments":';
  return { open: `"tool_calls":[{"index":${number},`, before, after: "}}]" };
}
