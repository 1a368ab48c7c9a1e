/** An answer in the making: accepts what the adapter says, opens and closes its items, and knows the result. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";
import { gatherFields } from "../fields.ts";
import type { OutputItem } from "../event.ts";
import { type Answer, type Choice, type Finish, isCutOff, type Notes, type Usage } from "../turn.ts";
import { emptyMessage, emptyReasoning } from "./draft.ts";
import { createItems, type Tell } from "./items.ts";

export type Script = ReturnType<typeof createScript>;

/** Parallel calls are told one after the other: each waits until the one before it is complete. */
export function createScript(turnId: string, tell: Tell) {
  const answer = createItems(tell);
  let waiting: CallDelta[][] = [];
  /** What the newest call of each number says: searching thousands for it with every word would take minutes. */
  const waitingBy = new Map<number, CallDelta[]>();
  let usage: Usage | undefined;
  let notes: Notes = {};
  /** The fields of the notes: a copy of them for each that changes would keep a talkative upstream's turn busy. */
  const noteFields = new Map<string, unknown>();
  const messageFields = gatherFields();
  /** What signs the reasoning but came after it. */
  const lateFields = gatherFields();
  let finish: Finish = "stop";

  function accept(delta: Delta): void {
    switch (delta.type) {
      case "text":
      case "refusal":
        if (delta.text === "") return; // a message is announced only when there is text
        if (!answer.isOpen("message")) begin(emptyMessage(delta.extra));
        return answer.add(delta);
      case "annotation":
        return answer.add(delta);
      case "message-end":
        if (!answer.isOpen("message")) return;
        answer.add(delta);
        return answer.close();
      case "reasoning":
        if (delta.text === "") return;
        if (!answer.isOpen("reasoning")) begin(emptyReasoning());
        return answer.add(delta);
      case "reasoning-seal":
        if (!answer.isOpen("reasoning")) begin(emptyReasoning());
        answer.add(delta);
        return answer.close();
      case "reasoning-extra":
        if (answer.isEmpty()) begin(emptyReasoning());
        return answer.isOpen("reasoning") ? answer.add(delta) : lateFields.add(delta.extra);
      case "message-extra":
        return messageFields.add(delta.extra);
      case "tool-call":
        if (waiting.length === 0 && answer.isComplete()) return tellCall(delta);
        return wait(delta);
      case "tool-arguments":
      case "tool-extra":
        return acceptInCall(delta);
      case "compaction": {
        const { summary, kept } = delta;
        begin({ type: "compaction", summary, ...(kept !== undefined && { kept }) });
        return answer.close();
      }
      case "other":
        begin(delta);
        return answer.close();
      case "usage":
        usage = delta.usage;
        return;
      case "notes":
        notes = { ...notes, ...delta.notes };
        for (const [key, value] of Object.entries(delta.notes.extra?.fields ?? {})) noteFields.set(key, value);
        return;
      case "finish":
        finish = delta.reason;
    }
  }

  function begin(skeleton: OutputItem): void {
    release();
    answer.begin(skeleton);
  }

  function wait(call: CallDelta): void {
    const said = [call];
    waiting.push(said);
    waitingBy.set(call.index, said);
  }

  function acceptInCall(delta: Exclude<CallDelta, { type: "tool-call" }>): void {
    const said = waitingBy.get(delta.index);
    if (said !== undefined) said.push(delta);
    else if (answer.isOpen("tool-call", delta.index)) answer.add(delta);
    else if (delta.type === "tool-arguments" && delta.text.trim() !== "") {
      throw new GatewayError("adapter_protocol", "The adapter sent arguments for a tool call that is not open.");
    }
  }

  /** Tells the calls that had to wait, each with all its arguments. */
  function release(): void {
    for (const said of waiting) for (const delta of said) tellCall(delta);
    waiting = [];
    waitingBy.clear();
  }

  function tellCall(delta: CallDelta): void {
    if (delta.type !== "tool-call") return answer.add(delta);
    answer.close();
    const { callId = `call_${turnId.replace(/^[a-z]+_/, "")}${answer.items.length}`, name, group, extra } = delta;
    const called = { type: "tool-call", kind: delta.kind ?? "function", callId, name } as const;
    const added = { ...(group !== undefined && { group }), arguments: "", ...(extra !== undefined && { extra }) };
    answer.begin({ ...called, ...added }, delta.index);
  }

  function toChoice(): Choice {
    const { items } = answer;
    const extra = messageFields.toExtra();
    const said = { items, ...(extra !== undefined && { extra }) };
    if (isCutOff(finish)) return { finish, ...said };
    // Whatever the adapter says: agents continue while an answer stops for calls, so it must have some.
    return { finish: items.some((item) => item.type === "tool-call") ? "tool-calls" : "stop", ...said };
  }

  function toNotes(): Notes {
    const { extra } = notes;
    return extra === undefined ? notes : { ...notes, extra: { ...extra, fields: Object.fromEntries(noteFields) } };
  }

  function signLate(): void {
    const extra = lateFields.toExtra();
    if (extra === undefined) return;
    answer.begin(emptyReasoning());
    answer.add({ type: "reasoning-extra", extra });
    answer.close();
  }

  return {
    accept,
    closeAll(whole: boolean): void {
      if (whole) release();
      const isComplete = whole && !isCutOff(finish);
      answer.close(isComplete);
      // What is cut off stays the last item.
      if (isComplete) signLate();
    },
    toChoice,
    toAnswer(failure: GatewayError | undefined, endedAt: Date): Answer {
      const said = toChoice();
      const common = { ...said, usage, notes: toNotes(), endedAt, ...answer.toRecord() };
      if (failure?.code === "cancelled") return { ...common, status: "cancelled", error: undefined };
      if (failure !== undefined) return { ...common, status: "failed", error: failure };
      return { ...common, status: isCutOff(said.finish) ? "incomplete" : "completed", error: undefined };
    },
  };
}

type CallDelta = Extract<Delta, { type: "tool-call" | "tool-arguments" | "tool-extra" }>;
