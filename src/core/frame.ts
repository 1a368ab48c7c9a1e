/** Makes events of deltas: it alone opens and closes items, and it alone knows how a turn ended. Who has the deltas has the events. */
import { createDraft, type Draft } from "./draft.ts";
import type { GatewayError } from "./errors.ts";
import type { Delta, Event } from "./event.ts";
import { type Item } from "./item.ts";
import { type Extra, gather } from "./settings.ts";
import type { Answer, Finish, Notes, Status, Usage } from "./turn.ts";

export interface Frame {
  /** Adds the events that these deltas make. */
  accept(deltas: readonly Delta[], events: Event[]): void;
  /** Closes what is open. The answer is told as the turn's end only once it is kept. */
  end(failure: GatewayError | undefined, endedAt: number, events: Event[]): Answer;
}

type CallStart = Extract<Delta, { type: "tool-call" }>;

/** A call that waits until the one before it is complete: parallel calls are told one after another. */
interface Waiting {
  readonly start: CallStart;
  readonly more: Delta[];
}

export function createFrame(key: string): Frame {
  const items: Item[] = [];
  const callIds = new Set<string>();
  let open: Draft | undefined;
  /** The adapter's number of the open call. */
  let openCall = -1;
  const waiting: Waiting[] = [];
  let usage: Usage | undefined;
  let notes: Notes = {};
  let finish: Finish = "stop";
  let extra: Extra | undefined;
  let late: Extra | undefined;
  let events: Event[] = [];

  function begin(item: Item): Draft {
    close(true);
    open = createDraft(item, items.length);
    events.push({ type: "item-start", index: items.length, item: open.item });
    return open;
  }

  function close(whole: boolean): void {
    if (open === undefined) return;
    const filling = whole ? open.fill?.() : undefined;
    if (filling !== undefined) events.push(filling);
    const item = open.end(whole);
    events.push({ type: "item-end", index: items.length, item, whole });
    // Half a call is of no use to anybody, and nobody could answer it.
    if (whole || finish !== "interrupted" || item.type !== "tool-call") items.push(item);
    open = undefined;
    openCall = -1;
  }

  function add(delta: Delta): void {
    const event = open?.add(delta);
    if (event !== undefined) events.push(event);
  }

  const idOf = (prefix: string): string => `${prefix}_${key}_${items.length + (open === undefined ? 0 : 1)}`;

  const openMessage = (added: Extra | undefined): Draft =>
    open?.item.type === "message"
      ? open
      : begin({ type: "message", id: idOf("msg"), role: "assistant", content: [], ...(added && { extra: added }) });

  const openReasoning = (): Draft =>
    open?.item.type === "reasoning" ? open : begin({ type: "reasoning", id: idOf("rs"), summary: [], text: "" });

  function startCall({ index, callId = "", name, kind = "function", group, extra }: CallStart): void {
    const id = idOf(kind === "custom" ? "ctc" : "fc");
    // Some servers repeat an id within an answer, or give none.
    const unique = callId === "" || callIds.has(callId) ? `call_${key}_${callIds.size}` : callId;
    callIds.add(unique);
    begin({
      type: "tool-call",
      id,
      kind,
      callId: unique,
      name,
      arguments: "",
      ...(group !== undefined && { group }),
      ...(extra !== undefined && { extra }),
    });
    openCall = index;
  }

  /** Calls that waited are told as soon as the one before them is complete, and all of them before anything else. */
  function tellWaiting(all: boolean): void {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      if (!all && open?.isComplete() === false) return;
      waiting.shift();
      startCall(next.start);
      for (const delta of next.more) add(delta);
    }
  }

  function accept(delta: Delta): void {
    switch (delta.type) {
      case "text":
      case "refusal":
        // A message is announced only when there is text.
        if (delta.text === "") return;
        tellWaiting(true);
        openMessage(delta.extra);
        return add(delta);
      case "annotation":
        return add(delta);
      case "message-end":
        if (open?.item.type !== "message") return;
        add(delta);
        return close(true);
      case "reasoning":
        if (delta.text === "") return;
        tellWaiting(true);
        openReasoning();
        return add(delta);
      case "reasoning-seal":
        openReasoning();
        add(delta);
        return close(true);
      case "reasoning-extra":
        return signReasoning(delta);
      case "message-extra":
        extra = gather(extra, delta.extra);
        return;
      case "tool-call":
        if (openCall === -1 || open === undefined) return startCall(delta);
        waiting.push({ start: delta, more: [] });
        return tellWaiting(false);
      case "tool-extra":
      case "tool-arguments": {
        if (delta.index === openCall) return add(delta);
        waiting.findLast(({ start }) => start.index === delta.index)?.more.push(delta);
        return;
      }
      case "compaction":
      case "other":
        tellWaiting(true);
        begin(
          delta.type === "other"
            ? {
                type: "other",
                id: idOf("item"),
                extra: delta.extra,
                ...(delta.exchange && { exchange: delta.exchange }),
              }
            : { type: "compaction", id: idOf("cmp"), summary: delta.summary },
        );
        return close(true);
      case "usage":
        usage = delta.usage;
        return;
      case "notes":
        notes = {
          ...notes,
          ...delta.notes,
          ...(delta.notes.extra && { extra: gather(notes.extra, delta.notes.extra) }),
        };
        return;
      case "finish":
        finish = delta.reason;
    }
  }

  /** A signature may come behind what it signs, which has been told: it is then an item of its own, at the end. */
  function signReasoning(delta: Extract<Delta, { type: "reasoning-extra" }>): void {
    if (open === undefined && items.length === 0) openReasoning();
    if (open?.item.type === "reasoning") return add(delta);
    late = gather(late, delta.extra);
  }

  return {
    accept(deltas, told) {
      events = told;
      for (const delta of deltas) accept(delta);
    },
    end(failure, endedAt, told) {
      events = told;
      const isCut = finish === "length" || finish === "content-filter" || finish === "interrupted";
      const isWhole = failure === undefined && !isCut;
      // Otherwise the call before them is half a call.
      if (isWhole) tellWaiting(true);
      const done = items.length;
      close(isWhole);
      const isBrokenOff = !isWhole && items.length > done;
      if (late !== undefined && isWhole) {
        openReasoning();
        add({ type: "reasoning-extra", extra: late });
        close(true);
      }
      if (!isCut) finish = items.some((item) => item.type === "tool-call") ? "tool-calls" : "stop";
      const status = toStatus(failure, isCut);
      return {
        status,
        finish,
        items,
        extra,
        usage,
        error: failure,
        notes,
        endedAt,
        ...(isBrokenOff && { isBrokenOff }),
      };
    },
  };
}

function toStatus(failure: GatewayError | undefined, isCut: boolean): Status {
  if (failure === undefined) return isCut ? "incomplete" : "completed";
  return failure.code === "client_closed" || failure.code === "cancelled" ? "cancelled" : "failed";
}
