/** Checks a response stream the way a careful client reads it: order, numbering, accumulation, one terminal event. */
import assert from "node:assert/strict";

type Fields = Readonly<Record<string, unknown>>;

export interface WireItem extends Fields {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly content?: readonly Fields[];
  readonly summary?: readonly Fields[];
}

export interface WireResponse extends Fields {
  readonly status: string;
  readonly output: readonly WireItem[];
  readonly error: { readonly code: string; readonly message: string } | null;
}

export interface WireEvent extends Fields {
  readonly type: string;
  readonly sequence_number: number;
  /** Which of these an event has depends on its type. */
  readonly response: WireResponse;
  readonly item: WireItem;
  readonly part: Fields;
  readonly item_id?: string;
  readonly output_index?: number;
  readonly content_index?: number;
  readonly summary_index?: number;
  readonly delta?: string;
}

/** What a client has received when the stream has ended. */
export interface CheckedStream {
  readonly events: readonly WireEvent[];
  /** The object of the terminal event. */
  readonly response: WireResponse;
}

/** Splits a stream into its events; the last message must be `[DONE]`. */
export function readStream(text: string): WireEvent[] {
  assert.ok(text.endsWith("\n\n"), "a stream ends with a whole message");
  assert.ok(!text.includes("\r"), "lines end with \\n only");
  const messages = text.slice(0, -2).split("\n\n");
  assert.equal(messages.pop(), "data: [DONE]");
  return messages.map((message, index) => {
    const found = /^event: (?<name>[a-z_.]+)\ndata: (?<body>[^\n]+)$/.exec(message);
    assert.ok(found?.groups, `message ${index} is an event and a body`);
    const event: WireEvent = JSON.parse(found.groups["body"]!);
    assert.equal(event.type, found.groups["name"], "the event's name is the body's type");
    assert.equal(event.sequence_number, index, "events are numbered from 0 without gaps");
    return event;
  });
}

/** Throws at the first event that no client should ever see. */
export function checkStream(text: string): CheckedStream {
  const events = readStream(text);
  assert.equal(events[0]?.type, "response.created");
  // A background turn first tells that it stands in line.
  const from = events[1]?.type === "response.queued" ? 2 : 1;
  assert.equal(events[from]?.type, "response.in_progress");
  if (from === 1) assert.deepEqual(events[0]?.["response"], events[1]?.["response"]);
  assert.deepEqual(events[0]?.["response"].output, []);
  const last = events.at(-1)!;
  assert.match(last.type, /^response\.(completed|incomplete|failed)$/);
  assert.equal(last.response.status, last.type.slice("response.".length));
  // A cancelled response has failed without an error event.
  const isCancelled = last.response?.error?.message === "The response was cancelled.";
  const beforeLast = last.type === "response.failed" && !isCancelled ? -2 : -1;
  if (beforeLast === -2) assert.equal(events.at(-2)?.type, "error");

  const items: WireItem[] = [];
  let open: ItemReader | undefined;
  for (const event of events.slice(from + 1, beforeLast)) {
    assert.equal(event.output_index, items.length, `${event.type} belongs to the open item`);
    if (event.type === "response.output_item.added") {
      assert.equal(open, undefined, "one item at a time");
      open = createItemReader(event.item);
    } else if (event.type === "response.output_item.done") {
      assert.ok(open, "only an open item is closed");
      open.close(event.item);
      items.push(event.item);
      open = undefined;
    } else {
      assert.ok(open, `${event.type} is inside an item`);
      open.accept(event);
    }
  }
  if (open !== undefined) {
    assert.equal(last.type, "response.failed", "every item is closed, unless the turn failed");
    items.push(open.interrupt(last.response.output.at(-1)!));
  }
  assert.deepEqual(last.response.output, items, "the final object contains the items as they were closed");
  return { events, response: last.response };
}

interface ItemReader {
  accept(event: WireEvent): void;
  close(item: WireItem): void;
  /** It was never done, but is in the final object as far as it came. */
  interrupt(item: WireItem): WireItem;
}

interface Piece {
  text: string;
  state: "open" | "said" | "closed";
  annotations: unknown[];
}

function createItemReader(added: WireItem): ItemReader {
  const hasStatus = !withoutStatus.has(added.type);
  assert.equal(added.status, hasStatus ? "in_progress" : undefined);
  const content: Piece[] = [];
  const summary: Piece[] = [];
  const input: Piece = { text: "", state: "open", annotations: [] };

  function pieceOf(event: WireEvent): Piece {
    assert.equal(event.item_id, added.id);
    if (event.summary_index !== undefined) return summary[event.summary_index]!;
    return event.content_index !== undefined ? content[event.content_index]! : input;
  }

  /** Checks that the item has exactly the streamed texts. */
  function checkTexts(item: WireItem): void {
    assert.deepEqual(
      textsOf(item.content),
      content.map((piece) => piece.text),
    );
    assert.deepEqual(
      (item.content ?? []).map((part) => part["annotations"] ?? []),
      content.map((piece) => piece.annotations),
    );
    assert.deepEqual(
      textsOf(item.summary),
      summary.map((piece) => piece.text),
    );
  }

  return {
    accept(event) {
      const step = event.type.slice(event.type.lastIndexOf(".") + 1);
      const isPart = /_part\./.test(event.type);
      if (event.type === "response.output_text.annotation.added") {
        const { state, annotations } = pieceOf(event);
        assert.equal(state, "open", "an annotation belongs to a text that is being streamed");
        assert.equal(annotations.push(event["annotation"]) - 1, event["annotation_index"]);
        return;
      }
      if (step === "added") {
        const pieces = event.summary_index !== undefined ? summary : content;
        assert.equal(event.summary_index ?? event.content_index, pieces.length, "parts are numbered from 0");
        assert.ok(
          pieces.every((piece) => piece.state === "closed"),
          "one part of a kind at a time",
        );
        assert.equal(saidIn(event.part), "", "a part begins empty");
        pieces.push({ text: "", state: "open", annotations: [] });
        return;
      }
      const piece = pieceOf(event);
      if (step === "delta") {
        assert.equal(piece.state, "open", "nothing is sent after the end of a part");
        assert.ok(event.delta, "a piece is not empty");
        piece.text += event.delta;
        return;
      }
      assert.equal(step, "done");
      assert.equal(piece.state, isPart ? "said" : "open");
      assert.equal(saidIn(isPart ? event.part : event), piece.text, "the pieces joined are the whole");
      if (isPart) assert.deepEqual(event.part["annotations"] ?? [], piece.annotations, "no annotation is lost");
      piece.state = isPart ? "closed" : "said";
    },
    interrupt(item) {
      assert.deepEqual([item.id, item.type, item.status], [added.id, added.type, "incomplete"]);
      if (isCall(item)) assert.deepEqual([saidIn(item), input.state], [input.text, "open"]);
      checkTexts(item);
      return item;
    },
    close(item) {
      assert.equal(item.id, added.id);
      assert.equal(item.type, added.type);
      if (hasStatus) assert.match(item.status, /^(completed|incomplete)$/);
      assert.ok(
        [...content, ...summary].every((piece) => piece.state === "closed"),
        "every part is closed",
      );
      if (isCall(item)) {
        assert.equal(input.state, "said");
        assert.equal(saidIn(item), input.text);
      }
      checkTexts(item);
    },
  };
}

const withoutStatus = new Set(["compaction", "mcp_list_tools", "mcp_approval_request"]);

/** A call whose tool the caller runs, so that its input is streamed. */
export function isCall(item: WireItem): boolean {
  return item.type === "function_call" || item.type === "custom_tool_call";
}

function textsOf(parts: readonly Fields[] = []): unknown[] {
  return parts.map(saidIn);
}

/** The full text of a part or of a closing event. */
function saidIn(part: Fields): unknown {
  return part["text"] ?? part["refusal"] ?? part["arguments"] ?? part["input"];
}
