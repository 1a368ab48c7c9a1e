/** A turn as far as it was received from another gateway: enough to end its stream if nobody else will. */
import type { Delta } from "../delta.ts";
import { beginDraft, type Draft } from "./draft.ts";
import type { Event, ItemDelta, OutputItem } from "../event.ts";
import type { Answer } from "../turn.ts";

export function createStreamTracker() {
  const items: OutputItem[] = [];
  let open: Draft | undefined;
  let count = 0;

  return {
    /** How many events were received. */
    get count(): number {
      return count;
    },
    accept(events: readonly Event[]): void {
      count += events.length;
      for (const event of events) {
        const delta = event.type === "item-delta" ? toDelta(event) : undefined;
        if (delta !== undefined) open?.accept(delta);
        else if (event.type === "item-start") open = beginDraft(event.item);
        else if (event.type === "item-end") {
          items.push(event.item);
          open = undefined;
        }
      }
    },
    /** Closes what is open, and ends the turn as it ended, with the items that were received. */
    finish(ended: Answer): readonly Event[] {
      const index = items.length;
      const item = open?.finish(false);
      const answer = { ...ended, items, pieces: undefined, places: undefined };
      if (item === undefined) return [{ type: "turn-end", answer }];
      return [
        { type: "item-end", index, item, whole: false },
        { type: "turn-end", answer: { ...answer, items: [...items, item], brokenOff: index } },
      ];
    },
  };
}

/** The delta that would produce this event. */
function toDelta({ kind, part, text, logprobs, annotation, extra }: ItemDelta): Delta | undefined {
  switch (kind) {
    case "text":
      return { type: "text", text, logprobs };
    case "refusal":
      return { type: "refusal", text };
    case "reasoning":
      return { type: "reasoning", text };
    case "summary":
      return { type: "reasoning", text, summary: part };
    case "arguments":
      return { type: "tool-arguments", index: 0, text };
    case "annotation":
      return annotation && { type: "annotation", annotation };
    case "extra":
      return extra && { type: "tool-extra", index: 0, extra };
  }
}
