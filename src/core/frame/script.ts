/** An answer in the making: accepts what the adapter says, opens and closes its items, and knows the result. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";
import { type Draft, beginCall, beginMessage, beginReasoning, beginWhole } from "./draft.ts";
import type { ItemEvent, OutputItem } from "../event.ts";
import { createPiecesRecorder } from "./pieces.ts";
import { type Answer, type Choice, type Finish, isCutOff, type Notes, type Usage } from "../turn.ts";

export type Script = ReturnType<typeof createScript>;

/** Receives the events of an answer; a list of events is one. */
export interface Listener {
  push(event: ItemEvent): unknown;
}

/** What has been said so far. One item is open at a time; parallel calls are told one after the other. */
export function createScript(turnId: string) {
  const items: OutputItem[] = [];
  const pieces = createPiecesRecorder();
  let brokenOff: number | undefined;
  let open: Draft | undefined;
  const isOpen = (type: OutputItem["type"]): boolean => open?.skeleton.type === type;
  /** The adapter's number of the open call; what later calls say waits until this one is complete. */
  let openCall: number | undefined;
  let waiting: { readonly call: CallDelta; readonly written: Delta[] }[] = [];
  /** What the newest call of each number has said: searching thousands for it with every word would take minutes. */
  const writtenBy = new Map<number, Delta[]>();
  let usage: Usage | undefined;
  let notes: Notes = {};
  let finish: Finish = "stop";

  function close(events: Listener, whole = true): void {
    if (open === undefined) return;
    const missing = whole ? open.missing?.() : undefined;
    if (missing !== undefined) emit({ type: "tool-arguments", index: openCall ?? 0, text: missing }, events);
    const item = open.finish();
    if (!whole) brokenOff = items.length;
    events.push({ type: "item-end", index: items.length, item, whole });
    items.push(item);
    open = undefined;
    openCall = undefined;
  }

  function begin(draft: Draft, events: Listener): void {
    open = draft;
    const { skeleton } = draft;
    pieces.beginItem(skeleton.type === "message" && skeleton.extra !== undefined);
    events.push({ type: "item-start", index: items.length, item: skeleton });
  }

  function emit(delta: Delta, events: Listener): void {
    const told = open?.accept(delta);
    if (told === undefined) return;
    pieces.record(told);
    events.push({ type: "item-delta", index: items.length, ...told });
  }

  function switchTo(draft: Draft, events: Listener): void {
    release(events);
    close(events);
    begin(draft, events);
  }

  function emitWhole(item: OutputItem, events: Listener): void {
    switchTo(beginWhole(item), events);
    close(events);
  }

  /** Tells the calls that had to wait, each with all its arguments. */
  function release(events: Listener): void {
    for (const { call, written } of waiting) {
      beginNext(call, events);
      for (const delta of written) emit(delta, events);
    }
    waiting = [];
    writtenBy.clear();
  }

  function putBehind(call: CallDelta): void {
    const written: Delta[] = [];
    waiting.push({ call, written });
    writtenBy.set(call.index, written);
  }

  function beginNext(call: CallDelta, events: Listener): void {
    close(events);
    const callId = call.callId ?? `call_${turnId.replace(/^[a-z]+_/, "")}${items.length}`;
    begin(beginCall(call, callId), events);
    openCall = call.index;
  }

  function acceptCall(delta: Extract<Delta, { type: "tool-arguments" | "tool-extra" }>, events: Listener): void {
    const written = writtenBy.get(delta.index);
    if (written !== undefined) written.push(delta);
    else if (delta.index === openCall) emit(delta, events);
    else if (delta.type === "tool-arguments" && delta.text.trim() !== "") {
      throw new GatewayError("adapter_protocol", "The adapter sent arguments for a tool call that is not open.");
    }
  }

  function accept(delta: Delta, events: Listener): void {
    switch (delta.type) {
      case "text":
      case "refusal":
        if (delta.text === "") return; // a message is announced only when there is text
        if (!isOpen("message")) switchTo(beginMessage(delta.extra), events);
        return emit(delta, events);
      case "annotation":
        if (isOpen("message")) emit(delta, events);
        return;
      case "message-end":
        if (!isOpen("message")) return;
        emit(delta, events);
        return close(events);
      case "reasoning":
        if (delta.text === "") return;
        if (!isOpen("reasoning")) switchTo(beginReasoning(), events);
        return emit(delta, events);
      case "reasoning-seal":
        if (!isOpen("reasoning")) switchTo(beginReasoning(), events);
        emit(delta, events);
        return close(events);
      case "tool-call":
        if (waiting.length > 0 || open?.isWhole?.() === false) return putBehind(delta);
        return beginNext(delta, events);
      case "tool-arguments":
      case "tool-extra":
        return acceptCall(delta, events);
      case "compaction":
        return emitWhole({ type: "compaction", summary: delta.summary }, events);
      case "other":
        return emitWhole(delta, events);
      case "usage":
        usage = delta.usage;
        return;
      case "notes":
        notes = { ...notes, ...delta.notes };
        return;
      case "finish":
        finish = delta.reason;
    }
  }

  function toChoice(): Choice {
    if (isCutOff(finish)) return { finish, items };
    // Whatever the adapter says: agents continue while an answer stops for calls, so it must have some.
    return { finish: items.some((item) => item.type === "tool-call") ? "tool-calls" : "stop", items };
  }

  return {
    accept,
    closeAll(events: Listener, whole: boolean): void {
      if (whole) release(events);
      close(events, whole && !isCutOff(finish));
    },
    toChoice,
    toAnswer(failure: GatewayError | undefined, endedAt: Date): Answer {
      const said = toChoice();
      const common = { ...said, usage, notes, endedAt, brokenOff, pieces: pieces.toPieces() };
      if (failure?.code === "cancelled") return { ...common, status: "cancelled", error: undefined };
      if (failure !== undefined) return { ...common, status: "failed", error: failure };
      return { ...common, status: isCutOff(said.finish) ? "incomplete" : "completed", error: undefined };
    },
  };
}

type CallDelta = Extract<Delta, { type: "tool-call" }>;
