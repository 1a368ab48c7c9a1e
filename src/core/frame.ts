/** Turns deltas into events: it alone opens and closes items, and the same deltas always make the same events. */
import { createDraft, type Draft } from "./draft.ts";
import { GatewayError } from "./errors.ts";
import type { Delta, Event } from "./event.ts";
import { type Item } from "./item.ts";
import { type Extra, gather } from "./settings.ts";
import type { Answer, Finish, Notes, Status, Usage } from "./turn.ts";

export interface Frame {
  /** Adds the events that these deltas make. */
  accept(deltas: readonly Delta[], events: Event[]): void;
  /** Set when arguments arrive for a call that is over, or that never began. The frame ignores all later deltas. */
  readonly failure: GatewayError | undefined;
  /**
   * Closes the open item. Without a `reason`, the answer has the frame's own failure. The answer is told as the turn's
   * end only once it is stored.
   */
  end(reason: GatewayError | undefined, endedAt: number, events: Event[]): Answer;
}

type CallStart = Extract<Delta, { type: "tool-call" }>;
/** A delta that belongs to a call by its index. */
type CallDelta = Extract<Delta, { type: "tool-arguments" | "tool-extra" }>;
/** A delta that belongs to the whole turn. */
type TurnDelta = Extract<Delta, { type: "message-extra" | "usage" | "notes" | "finish" }>;
/** A delta that begins an item, or adds to the item before it, so that its place in the order counts. */
type OrderedDelta = Exclude<Delta, CallDelta | TurnDelta>;

/** A delta that waits until the open call has all its arguments. */
interface Waiting {
  readonly delta: OrderedDelta;
  /** The arguments and other additions of the call that it begins. */
  readonly ofCall: CallDelta[];
}

export const createFrame = (key: string): Frame => new TurnFrame(key);

class TurnFrame implements Frame {
  readonly #key: string;
  readonly #items: Item[] = [];
  readonly #callIds = new Set<string>();
  #open: Draft | undefined;
  /** The adapter's number of the open call. */
  #openCall: number | undefined;
  /** In the order in which they arrived; the first `#toldCount` have been told already. */
  #waiting: Waiting[] = [];
  #toldCount = 0;
  /** The newest waiting call of each index. */
  readonly #waitingCalls = new Map<number, Waiting>();
  /** The names of all calls that have begun, by index. */
  readonly #names = new Map<number, string>();
  #usage: Usage | undefined;
  #notes: Notes = {};
  #finish: Finish = "stop";
  #extra: Extra | undefined;
  #late: Extra | undefined;
  #failure: GatewayError | undefined;
  #events: Event[] = [];

  constructor(key: string) {
    this.#key = key;
  }

  get failure(): GatewayError | undefined {
    return this.#failure;
  }

  accept(deltas: readonly Delta[], told: Event[]): void {
    this.#events = told;
    for (const delta of deltas) if (this.#failure === undefined) this.#take(delta);
  }

  end(reason: GatewayError | undefined, endedAt: number, told: Event[]): Answer {
    this.#events = told;
    const failure = reason ?? this.#failure;
    const items = this.#items;
    const isCut = this.#finish === "length" || this.#finish === "content-filter" || this.#finish === "interrupted";
    const isWhole = failure === undefined && !isCut;
    // In a turn that broke off, the open call is half a call, and what waits behind it is dropped.
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
      case "message-extra":
        this.#extra = gather(this.#extra, delta.extra);
        return;
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
        return;
      case "tool-arguments":
      case "tool-extra":
        return this.#takeOfCall(delta);
      case "text":
      case "refusal":
      case "reasoning":
        // An item is announced only when there is text.
        if (delta.text === "") return;
    }
    if (delta.type === "tool-call") this.#names.set(delta.index, delta.name);
    this.#tellWaiting(false);
    if (this.#open?.isComplete() === false) this.#wait(delta);
    else this.#tell(delta);
  }

  #takeOfCall(delta: CallDelta): void {
    const waiting = this.#waitingCalls.get(delta.index);
    if (waiting !== undefined) {
      waiting.ofCall.push(delta);
      this.#tellWaiting(false);
    } else if (delta.index === this.#openCall) {
      this.#add(delta);
    } else if (delta.type === "tool-arguments" && delta.text !== "") {
      this.#failure = strayArguments(this.#names.get(delta.index));
    }
  }

  #wait(delta: OrderedDelta): void {
    const waiting: Waiting = { delta, ofCall: [] };
    this.#waiting.push(waiting);
    if (delta.type === "tool-call") this.#waitingCalls.set(delta.index, waiting);
  }

  /**
   * Tells the waiting deltas in order: all of them, or until a call lacks arguments. A server may interleave the
   * arguments of a call with text and other calls, but items are told one after another. If the next item closed a call
   * that lacks arguments, an agent would run half a call.
   */
  #tellWaiting(all: boolean): void {
    for (let next = this.#waiting[this.#toldCount]; next !== undefined; next = this.#waiting[this.#toldCount]) {
      if (!all && this.#open?.isComplete() === false) return;
      this.#toldCount += 1;
      const { delta, ofCall } = next;
      if (delta.type === "tool-call" && this.#waitingCalls.get(delta.index) === next)
        this.#waitingCalls.delete(delta.index);
      this.#tell(delta);
      for (const more of ofCall) this.#add(more);
    }
    if (this.#toldCount === 0) return;
    this.#waiting = [];
    this.#toldCount = 0;
  }

  #tell(delta: OrderedDelta): void {
    switch (delta.type) {
      case "text":
      case "refusal":
        this.#openMessage(delta.extra);
        return this.#add(delta);
      case "annotation":
        return this.#add(delta);
      case "message-end":
        if (this.#open?.item.type !== "message") return;
        this.#add(delta);
        return this.#close(true);
      case "reasoning":
        this.#openReasoning();
        return this.#add(delta);
      case "reasoning-seal":
        this.#openReasoning();
        this.#add(delta);
        return this.#close(true);
      case "reasoning-extra":
        return this.#sign(delta);
      case "tool-call":
        return this.#startCall(delta);
      case "compaction":
        this.#begin({ type: "compaction", id: this.#idOf("cmp"), summary: delta.summary });
        return this.#close(true);
      case "other": {
        const { extra, exchange } = delta;
        this.#begin({ type: "other", id: this.#idOf("item"), extra, ...(exchange && { exchange }) });
        return this.#close(true);
      }
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
    this.#openCall = undefined;
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

  /** A signature may come behind what it signs, which has been told: it is then an item of its own, at the end. */
  #sign(delta: Extract<Delta, { type: "reasoning-extra" }>): void {
    if (this.#open === undefined && this.#items.length === 0) this.#openReasoning();
    if (this.#open?.item.type === "reasoning") return this.#add(delta);
    this.#late = gather(this.#late, delta.extra);
  }
}

function strayArguments(name: string | undefined): GatewayError {
  const call =
    name === undefined ? "a tool call that it never began" : `the tool call '${name}', which was over already`;
  return new GatewayError("adapter_protocol", `The upstream sent arguments for ${call}. The call cannot be trusted.`);
}

function toStatus(failure: GatewayError | undefined, isCut: boolean): Status {
  if (failure === undefined) return isCut ? "incomplete" : "completed";
  return failure.code === "client_closed" || failure.code === "cancelled" ? "cancelled" : "failed";
}
