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

export const createFrame = (key: string): Frame => new TurnFrame(key);

class TurnFrame implements Frame {
  readonly #key: string;
  readonly #items: Item[] = [];
  readonly #callIds = new Set<string>();
  #open: Draft | undefined;
  /** The adapter's number of the open call. */
  #openCall = -1;
  #waiting: Waiting[] = [];
  #usage: Usage | undefined;
  #notes: Notes = {};
  #finish: Finish = "stop";
  #extra: Extra | undefined;
  #late: Extra | undefined;
  #events: Event[] = [];

  constructor(key: string) {
    this.#key = key;
  }

  accept(deltas: readonly Delta[], told: Event[]): void {
    this.#events = told;
    for (const delta of deltas) this.#take(delta);
  }

  end(failure: GatewayError | undefined, endedAt: number, told: Event[]): Answer {
    this.#events = told;
    const items = this.#items;
    const isCut = this.#finish === "length" || this.#finish === "content-filter" || this.#finish === "interrupted";
    const isWhole = failure === undefined && !isCut;
    // Otherwise the call before them is half a call.
    if (isWhole) this.#tellWaiting(true);
    const done = items.length;
    this.#close(isWhole);
    const isBrokenOff = !isWhole && items.length > done;
    if (this.#late !== undefined && isWhole) {
      this.#openReasoning();
      this.#add({ type: "reasoning-extra", extra: this.#late });
      this.#close(true);
    }
    if (!isCut) this.#finish = items.some((item) => item.type === "tool-call") ? "tool-calls" : "stop";
    return {
      status: toStatus(failure, isCut),
      finish: this.#finish,
      items,
      extra: this.#extra,
      usage: this.#usage,
      error: failure,
      notes: this.#notes,
      endedAt,
      ...(isBrokenOff && { isBrokenOff }),
    };
  }

  #take(delta: Delta): void {
    switch (delta.type) {
      case "text":
      case "refusal":
        // A message is announced only when there is text.
        if (delta.text === "") return;
        this.#tellWaiting(true);
        this.#openMessage(delta.extra);
        return this.#add(delta);
      case "annotation":
        return this.#add(delta);
      case "message-end":
        if (this.#open?.item.type !== "message") return;
        this.#add(delta);
        return this.#close(true);
      case "reasoning":
        if (delta.text === "") return;
        this.#tellWaiting(true);
        this.#openReasoning();
        return this.#add(delta);
      case "reasoning-seal":
        this.#openReasoning();
        this.#add(delta);
        return this.#close(true);
      case "reasoning-extra":
        return this.#sign(delta);
      case "message-extra":
        this.#extra = gather(this.#extra, delta.extra);
        return;
      case "tool-call":
        if (this.#openCall === -1 || this.#open === undefined) return this.#startCall(delta);
        this.#waiting.push({ start: delta, more: [] });
        return this.#tellWaiting(false);
      case "tool-extra":
      case "tool-arguments":
        if (delta.index === this.#openCall) return this.#add(delta);
        this.#waiting.findLast(({ start }) => start.index === delta.index)?.more.push(delta);
        return;
      case "compaction":
        this.#tellWaiting(true);
        this.#begin({ type: "compaction", id: this.#idOf("cmp"), summary: delta.summary });
        return this.#close(true);
      case "other": {
        const { extra, exchange } = delta;
        this.#tellWaiting(true);
        this.#begin({ type: "other", id: this.#idOf("item"), extra, ...(exchange && { exchange }) });
        return this.#close(true);
      }
      case "usage":
        this.#usage = delta.usage;
        return;
      case "notes": {
        const extra = delta.notes.extra && gather(this.#notes.extra, delta.notes.extra);
        this.#notes = { ...this.#notes, ...delta.notes, ...(extra && { extra }) };
        return;
      }
      case "finish":
        this.#finish = delta.reason;
    }
  }

  #begin(item: Item): void {
    this.#close(true);
    this.#open = createDraft(item, this.#items.length);
    this.#events.push({ type: "item-start", index: this.#items.length, item: this.#open.item });
  }

  #close(whole: boolean): void {
    const open = this.#open;
    if (open === undefined) return;
    const filling = whole ? open.fill?.() : undefined;
    if (filling !== undefined) this.#events.push(filling);
    const item = open.end(whole);
    this.#events.push({ type: "item-end", index: this.#items.length, item, whole });
    // Half a call is of no use to anybody, and nobody could answer it.
    if (whole || this.#finish !== "interrupted" || item.type !== "tool-call") this.#items.push(item);
    this.#open = undefined;
    this.#openCall = -1;
  }

  #add(delta: Delta): void {
    const event = this.#open?.add(delta);
    if (event !== undefined) this.#events.push(event);
  }

  /** Of the item that begins now. */
  #idOf(prefix: string): string {
    return `${prefix}_${this.#key}_${this.#items.length + (this.#open === undefined ? 0 : 1)}`;
  }

  #openMessage(extra: Extra | undefined): void {
    if (this.#open?.item.type === "message") return;
    const id = this.#idOf("msg");
    this.#begin({ type: "message", id, role: "assistant", content: [], ...(extra && { extra }) });
  }

  #openReasoning(): void {
    if (this.#open?.item.type === "reasoning") return;
    this.#begin({ type: "reasoning", id: this.#idOf("rs"), summary: [], text: "" });
  }

  #startCall({ index, callId = "", name, kind = "function", group, extra }: CallStart): void {
    const id = this.#idOf(kind === "custom" ? "ctc" : "fc");
    // Some servers repeat an id within an answer, or give none.
    const isTaken = callId === "" || this.#callIds.has(callId);
    const unique = isTaken ? `call_${this.#key}_${this.#callIds.size}` : callId;
    this.#callIds.add(unique);
    const inGroup = group === undefined ? undefined : { group };
    this.#begin({
      type: "tool-call",
      id,
      kind,
      callId: unique,
      name,
      arguments: "",
      ...inGroup,
      ...(extra && { extra }),
    });
    this.#openCall = index;
  }

  /** Calls that waited are told as soon as the one before them is complete, and all of them before anything else. */
  #tellWaiting(all: boolean): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!all && this.#open?.isComplete() === false) return;
      this.#waiting.shift();
      this.#startCall(next.start);
      for (const delta of next.more) this.#add(delta);
    }
  }

  /** A signature may come behind what it signs, which has been told: it is then an item of its own, at the end. */
  #sign(delta: Extract<Delta, { type: "reasoning-extra" }>): void {
    if (this.#open === undefined && this.#items.length === 0) this.#openReasoning();
    if (this.#open?.item.type === "reasoning") return this.#add(delta);
    this.#late = gather(this.#late, delta.extra);
  }
}

function toStatus(failure: GatewayError | undefined, isCut: boolean): Status {
  if (failure === undefined) return isCut ? "incomplete" : "completed";
  return failure.code === "client_closed" || failure.code === "cancelled" ? "cancelled" : "failed";
}
