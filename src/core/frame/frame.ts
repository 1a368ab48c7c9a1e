/** Makes events of an adapter's deltas: it alone opens and closes items, and it alone ends a turn. */
import type { Delta } from "../delta.ts";
import { callerLeft, GatewayError } from "../errors.ts";
import { type Draft, beginCall, beginMessage, beginReasoning, beginWhole } from "./draft.ts";
import type { Event, Events, OutputItem } from "../event.ts";
import { createPiecesRecorder } from "./pieces.ts";
import { type Answer, type Finish, isCutOff, type Notes, type Usage } from "../turn.ts";

/** How a turn ends outside the stream. */
export interface Ending {
  /** Awaited before the end is told; if it throws, the turn has failed. */
  settle(answer: Answer): Promise<void>;
  /** Awaited before the end of a turn that failed or was cancelled is told, or when nobody hears it to its end; it must not throw. */
  abandon?(answer: Answer): Promise<void>;
  /** What the caller shall read of something thrown. */
  explain(thrown: unknown): GatewayError;
  /** Called once, when nothing more will be told. */
  leave(): void;
  now(): Date;
}

/**
 * Yields a batch of events for each batch of deltas; the first one holds `turn-start`, the last one `turn-end`.
 * A failure before the first delta is thrown; a later one closes what is open and ends the turn as failed.
 */
export async function* frame(turnId: string, deltas: AsyncIterable<readonly Delta[]>, ending: Ending): Events {
  const script = createScript(turnId);
  let events: Event[] = [{ type: "turn-start" }];
  let told = false;
  let answer: Answer | undefined;
  try {
    try {
      for await (const batch of deltas) {
        for (const delta of batch) script.hear(delta, events);
        if (events.length === 0) continue;
        told = true;
        yield events;
        events = [];
      }
      script.closeAll(events, true);
      await ending.settle((answer = script.toAnswer(undefined, ending.now())));
    } catch (thrown) {
      const failure = ending.explain(thrown);
      if (!told) throw failure;
      script.closeAll(events, false);
      answer = script.toAnswer(failure, ending.now());
      await ending.abandon?.(answer);
    }
    events.push({ type: "turn-end", answer });
    yield events;
  } finally {
    if (told && answer === undefined) {
      const failure = ending.explain(callerLeft());
      script.closeAll(events, false);
      await ending.abandon?.(script.toAnswer(failure, ending.now()));
    }
    ending.leave();
  }
}

/** The events of a turn that failed after its stream was opened and before the adapter said a word. */
export function failedTurn(error: GatewayError, endedAt: Date): readonly [Event, TurnEnd] {
  return [{ type: "turn-start" }, { type: "turn-end", answer: createScript("").toAnswer(error, endedAt) }];
}

/** The events of a turn that nothing was asked of. */
export function emptyTurn(endedAt: Date): readonly Event[] {
  const script = createScript("");
  script.hear({ type: "usage", usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 } }, []);
  return [{ type: "turn-start" }, { type: "turn-end", answer: script.toAnswer(undefined, endedAt) }];
}

type TurnEnd = Extract<Event, { type: "turn-end" }>;

/** What has been said so far. One item is open at a time; calls that run side by side are told one after the other. */
function createScript(turnId: string) {
  const items: OutputItem[] = [];
  const pieces = createPiecesRecorder();
  let brokenOff: number | undefined;
  let open: Draft | undefined;
  const isOpen = (type: OutputItem["type"]): boolean => open?.skeleton.type === type;
  /** The adapter's own number of the open call; what later calls say meanwhile waits until this one is whole. */
  let openCall: number | undefined;
  let waiting: { readonly call: CallDelta; readonly written: Delta[] }[] = [];
  /** What the newest of each number has said: to look for it among thousands, with every word, would take minutes. */
  const writtenBy = new Map<number, Delta[]>();
  let usage: Usage | undefined;
  let notes: Notes = {};
  let finish: Finish = "stop";

  function close(events: Event[], whole = true): void {
    if (open === undefined) return;
    const item = open.finish();
    if (!whole) brokenOff = items.length;
    events.push({ type: "item-end", index: items.length, item, whole });
    items.push(item);
    open = undefined;
    openCall = undefined;
  }

  function begin(draft: Draft, events: Event[]): void {
    open = draft;
    const { skeleton } = draft;
    pieces.beginItem(skeleton.type === "message" && skeleton.extra !== undefined);
    events.push({ type: "item-start", index: items.length, item: skeleton });
  }

  function tell(delta: Delta, events: Event[]): void {
    const told = open?.hear(delta);
    if (told === undefined) return;
    pieces.hear(told);
    events.push({ type: "item-delta", index: items.length, ...told });
  }

  function switchTo(draft: Draft, events: Event[]): void {
    release(events);
    close(events);
    begin(draft, events);
  }

  function tellWhole(item: OutputItem, events: Event[]): void {
    switchTo(beginWhole(item), events);
    close(events);
  }

  /** Tells the calls that had to wait, each with all of its arguments. */
  function release(events: Event[]): void {
    for (const { call, written } of waiting) {
      beginNext(call, events);
      for (const delta of written) tell(delta, events);
    }
    waiting = [];
    writtenBy.clear();
  }

  function putBehind(call: CallDelta): void {
    const written: Delta[] = [];
    waiting.push({ call, written });
    writtenBy.set(call.index, written);
  }

  function beginNext(call: CallDelta, events: Event[]): void {
    close(events);
    const callId = call.callId ?? `call_${turnId.replace(/^[a-z]+_/, "")}${items.length}`;
    begin(beginCall(call, callId), events);
    openCall = call.index;
  }

  function hearCall(delta: Extract<Delta, { type: "tool-arguments" | "tool-extra" }>, events: Event[]): void {
    const written = writtenBy.get(delta.index);
    if (written !== undefined) written.push(delta);
    else if (delta.index === openCall) tell(delta, events);
    else if (delta.type === "tool-arguments" && delta.text.trim() !== "") {
      throw new GatewayError("adapter_protocol", "The adapter sent arguments for a tool call that is not open.");
    }
  }

  function hear(delta: Delta, events: Event[]): void {
    switch (delta.type) {
      case "text":
      case "refusal":
        if (delta.text === "") return; // a message is announced only when there is text
        if (!isOpen("message")) switchTo(beginMessage(delta.extra), events);
        return tell(delta, events);
      case "annotation":
        if (isOpen("message")) tell(delta, events);
        return;
      case "message-end":
        if (!isOpen("message")) return;
        tell(delta, events);
        return close(events);
      case "reasoning":
        if (delta.text === "") return;
        if (!isOpen("reasoning")) switchTo(beginReasoning(), events);
        return tell(delta, events);
      case "reasoning-seal":
        if (!isOpen("reasoning")) switchTo(beginReasoning(), events);
        tell(delta, events);
        return close(events);
      case "tool-call":
        if (waiting.length > 0 || open?.isWhole?.() === false) return putBehind(delta);
        return beginNext(delta, events);
      case "tool-arguments":
      case "tool-extra":
        return hearCall(delta, events);
      case "compaction":
        return tellWhole({ type: "compaction", summary: delta.summary }, events);
      case "other":
        return tellWhole(delta, events);
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

  return {
    hear,
    closeAll(events: Event[], whole: boolean): void {
      if (whole) release(events);
      close(events, whole && !isCutOff(finish));
    },
    toAnswer(failure: GatewayError | undefined, endedAt: Date): Answer {
      const called = items.some((item) => item.type === "tool-call");
      const reason = finish === "stop" && called ? "tool-calls" : finish;
      const common = { finish: reason, items, usage, notes, endedAt, brokenOff, pieces: pieces.toPieces() };
      if (failure?.code === "cancelled") return { ...common, status: "cancelled", error: undefined };
      if (failure !== undefined) return { ...common, status: "failed", error: failure };
      return { ...common, status: isCutOff(reason) ? "incomplete" : "completed", error: undefined };
    },
  };
}

type CallDelta = Extract<Delta, { type: "tool-call" }>;
