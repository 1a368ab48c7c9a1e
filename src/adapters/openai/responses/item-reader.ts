/** Reads the items of an answer: each begins, is said piece by piece, and at its end says what its pieces have not. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import type { Annotation, Extra } from "../../../core/item.ts";
import { type JsonObject, isObject, listAt, textAt } from "../../json.ts";
import { annotationsAt, completeAnnotation, moveAnnotation } from "../annotations.ts";
import { toArgumentsText } from "../json.ts";
import { readLogprobs } from "../logprobs.ts";
import { extraOf } from "../native.ts";
import type { Say } from "../stream.ts";

/** Items are known by their index in the output, and the parts of a message by theirs in it. Empty pieces say nothing. */
export interface ItemReader {
  begin(item: JsonObject, index: number): void;
  addText(index: number, part: number, text: string, logprobs: readonly object[] | undefined): void;
  /** A single note. One that precedes its text waits, and so do those after it, until the part is complete. */
  addNote(index: number, part: number, note: Annotation): void;
  addRefusal(index: number, text: string): void;
  /** `summary`: the section of the item's summary that it belongs to; absent: it is the reasoning itself. */
  addReasoning(index: number, text: string, summary?: number): void;
  addArguments(index: number, text: string): void;
  /** All arguments of a call; some may have been said. */
  completeArguments(index: number, whole: string): void;
  end(item: JsonObject, index: number): void;
  /** Says what none of its items has: some servers stream only the end. */
  endAll(response: JsonObject): void;
  hasCalls(): boolean;
}

interface ItemReading {
  /** Something of it was said: words, or a call's arguments. */
  isSaid: boolean;
  /** What the dialect adds to a message, said with its first words: alone it would already be an answer. */
  phase: Extra | undefined;
  /** If it is a call that has begun: the fields that the dialect adds to it, as said so far, in JSON. */
  callFields: string | undefined;
  /** A call's arguments, as said so far. */
  written: string;
  /** The parts of a message that have text or notes, by their index. */
  readonly parts: PartReading[];
}

interface PartReading {
  /** As said so far. */
  text: string;
  /** Consecutive texts become one; this much of it precedes this part. */
  start: number;
  /** How many of its notes were read. */
  notes: number;
  /** One of them came before its text. */
  isNotedEarly: boolean;
}

export function createItemReader(say: Say): ItemReader {
  const items = new Map<number, ItemReading>();
  /** The index of the item said last, while more of it may come; or -1. */
  let open = -1;
  /** Sections of summaries are numbered across items, to keep those of two items apart; the last one and its place. */
  let section = -1;
  let sectionPlace = "";

  function itemAt(index: number): ItemReading {
    let item = items.get(index);
    if (item === undefined) {
      item = { isSaid: false, phase: undefined, callFields: undefined, written: "", parts: [] };
      items.set(index, item);
    }
    return item;
  }

  function partAt(index: number, part: number): PartReading {
    return (itemAt(index).parts[part] ??= { text: "", start: 0, notes: 0, isNotedEarly: false });
  }

  function sayPiece(index: number, delta: Extract<Delta, { readonly text: string }>): void {
    if (delta.text === "") return;
    const item = itemAt(index);
    const opens = !item.isSaid && (delta.type === "text" || delta.type === "refusal");
    say(opens && item.phase !== undefined ? { ...delta, extra: item.phase } : delta);
    item.isSaid = true;
    open = index;
  }

  /** Also for a call that has begun: its dialect may have added something since. */
  function beginCall(item: JsonObject, index: number): void {
    const kind = callKinds.get(item["type"]);
    const name = textAt(item, "name");
    // A call without a name yet begins when it is done.
    if (kind === undefined || name === undefined) return;
    const begun = itemAt(index);
    const extra = extraOf(item, knownOfCall, "responses");
    const fields = JSON.stringify(extra?.fields ?? {});
    if (begun.callFields === undefined) {
      const callId = textAt(item, "call_id");
      const group = textAt(item, "namespace");
      const more = { ...(group !== undefined && { group }), ...(extra !== undefined && { extra }) };
      say({ type: "tool-call", index, callId, name, kind, ...more });
    } else if (extra !== undefined && fields !== begun.callFields) say({ type: "tool-extra", index, extra });
    begun.callFields = fields;
  }

  function addText(index: number, part: number, text: string, logprobs: readonly object[] | undefined): void {
    if (text === "") return;
    const read = partAt(index, part);
    if (read.text === "") read.start = endOf(itemAt(index).parts[part - 1]);
    read.text += text;
    sayPiece(index, { type: "text", text, logprobs });
  }

  function sayNote(part: PartReading, note: Annotation): void {
    part.notes += 1;
    const annotation = completeAnnotation(note, part.text.length);
    if (annotation !== undefined) say({ type: "annotation", annotation: moveAnnotation(annotation, part.start) });
  }

  function addReasoning(index: number, text: string, summary?: number): void {
    if (text === "") return;
    if (summary === undefined) return sayPiece(index, { type: "reasoning", text });
    const place = `${index} ${summary}`;
    if (place !== sectionPlace) section += 1;
    sectionPlace = place;
    sayPiece(index, { type: "reasoning", text, summary: section });
  }

  /** If the call has not begun, its `done` item has the arguments. */
  function addArguments(index: number, text: string): void {
    const call = itemAt(index);
    if (call.callFields === undefined) return;
    call.written += text;
    sayPiece(index, { type: "tool-arguments", index, text });
  }

  /** Some servers stream less of the arguments than the complete call has. */
  function completeArguments(index: number, whole: string): void {
    const { written, isSaid } = itemAt(index);
    if (!isSaid || index === open) addArguments(index, restOf(whole, written));
  }

  /** The same holds for a text, unless a later part has begun. */
  function sayRest(item: JsonObject | undefined, index: number): void {
    if (index !== open || item?.["type"] !== "message") return;
    const { parts } = itemAt(index);
    for (const [number, whole] of partsAt(item, "content").entries()) {
      const part = parts[number];
      if (!part?.text || parts[number + 1]?.text) continue;
      const text = restOf(textAt(whole, "text") ?? "", part.text);
      part.text += text;
      sayPiece(index, { type: "text", text });
    }
  }

  function endMessage(item: JsonObject, index: number, isNews: boolean): void {
    sayRest(item, index);
    const extra = phaseOf(item);
    if (isNews) itemAt(index).phase = extra;
    for (const [number, part] of partsAt(item, "content").entries()) {
      if (isNews) {
        addText(index, number, textAt(part, "text") ?? "", readLogprobs(listAt(part, "logprobs")));
        sayPiece(index, { type: "refusal", text: textAt(part, "refusal") ?? "" });
      }
      const read = partAt(index, number);
      for (const note of annotationsAt(part).slice(read.notes)) sayNote(read, note);
    }
    if (item["status"] !== "incomplete") say({ type: "message-end", extra });
  }

  function endReasoning(item: JsonObject, index: number, isNews: boolean): void {
    if (isNews) {
      for (const text of textsAt(item, "content")) addReasoning(index, text);
      for (const [number, text] of textsAt(item, "summary").entries()) addReasoning(index, text, number);
    }
    const encrypted = textAt(item, "encrypted_content");
    if (encrypted !== undefined) say({ type: "reasoning-seal", encrypted });
  }

  function endCall(item: JsonObject, index: number): void {
    beginCall(item, index);
    if (itemAt(index).callFields === undefined) {
      throw new GatewayError("adapter_protocol", "The upstream called a tool without naming it.");
    }
    completeArguments(index, toArgumentsText(item[item["type"] === "function_call" ? "arguments" : "input"]));
  }

  /** What we have no type for, such as a hosted tool's call, is for callers of this dialect. */
  function endOther(item: JsonObject, index: number, isNews: boolean): void {
    if (!isNews || textAt(item, "type") === undefined) return;
    if (!isCallersSearch(item)) return say(toOther(item));
    itemAt(index).callFields ??= "{}";
    say({ type: "tool-call", index, callId: textAt(item, "call_id"), name: "tool_search", kind: "search" });
    say({ type: "tool-arguments", index, text: JSON.stringify(item["arguments"] ?? {}) });
  }

  function end(item: JsonObject, index: number): void {
    const begun = itemAt(index);
    const isNews = !begun.isSaid;
    switch (item["type"]) {
      case "message":
        endMessage(item, index, isNews);
        break;
      case "reasoning":
        endReasoning(item, index, isNews);
        break;
      case "function_call":
      case "custom_tool_call":
        endCall(item, index);
        break;
      default:
        endOther(item, index, isNews);
    }
    begun.isSaid = true;
    open = -1;
  }

  return {
    begin(item, index) {
      open = -1;
      if (item["type"] === "message") itemAt(index).phase = phaseOf(item);
      else beginCall(item, index);
    },
    addText,
    addNote(index, part, note) {
      const read = partAt(index, part);
      read.isNotedEarly ||= read.text === "";
      if (!read.isNotedEarly) sayNote(read, note);
    },
    addRefusal: (index, text) => sayPiece(index, { type: "refusal", text }),
    addReasoning,
    addArguments,
    completeArguments,
    end,
    endAll(response) {
      const output = partsAt(response, "output");
      if (!items.values().some(({ isSaid }) => isSaid)) output.forEach(end);
      sayRest(output[open], open);
    },
    hasCalls: () => items.values().some(({ callFields }) => callFields !== undefined),
  };
}

/** A message's phase (commentary or final) is also sent back in the next turn. */
function phaseOf(message: JsonObject): Extra | undefined {
  const phase = textAt(message, "phase");
  return phase === undefined ? undefined : { dialect: "responses", fields: { phase } };
}

/** Where the text of a part ends. */
function endOf(part: PartReading | undefined): number {
  return part === undefined ? 0 : part.start + part.text.length;
}

/** What a whole text has beyond the part of it that was said; nothing if it differs. */
function restOf(whole: string, said: string): string {
  return whole.startsWith(said) ? whole.slice(said.length) : "";
}

/** A tool search for the caller to run; the server's own are marked, or have no id. */
function isCallersSearch(item: JsonObject): boolean {
  const isServers = item["execution"] === "server" || textAt(item, "call_id") === undefined;
  return item["type"] === "tool_search_call" && !isServers;
}

/** Items that await the caller have a call id, or an id that the caller's answer names. */
function toOther(item: JsonObject): Delta {
  const id = textAt(item, item["type"] === "mcp_approval_request" ? "id" : "call_id");
  const side = textAt(item, "type")?.endsWith("_output") === true ? "tools" : "model";
  const extra = { dialect: "responses", fields: item } as const;
  return { type: "other", extra, ...(id !== undefined && { exchange: { side, id } }) };
}

const knownOfCall = new Set(["type", "id", "status", "call_id", "name", "namespace", "arguments", "input"]);

const callKinds: ReadonlyMap<unknown, "function" | "custom"> = new Map([
  ["function_call", "function"],
  ["custom_tool_call", "custom"],
]);

function partsAt(from: JsonObject, key: string): readonly JsonObject[] {
  return (listAt(from, key) ?? []).filter(isObject);
}

function textsAt(from: JsonObject, key: string): readonly string[] {
  return partsAt(from, key).flatMap((part) => textAt(part, "text") ?? []);
}
