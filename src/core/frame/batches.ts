/** Events that are already known, told in small batches: a slow reader holds no more of a long answer than the next one. */
import type { Event, Events } from "../event.ts";
import { inCharacters, lengthOf as lengthOfItem, lengthOfItems, type Measure } from "./pieces.ts";

/** How many events are told at once, unless they are long. */
const maxEvents = 500;
/** How many characters, except that the last event may have any number. */
const maxCharacters = 64 * 1024;

/** Produces each event only when its batch is wanted. */
export async function* inBatches(events: Iterable<Event>): Events {
  const isFull = createBatchLimit();
  let batch: Event[] = [];
  for (const event of events) {
    batch.push(event);
    if (!isFull(event)) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** The next batch of a list that still grows. Only that much of it is copied: it may be long, and has many readers. */
export function batchFrom(events: readonly Event[], from: number): readonly Event[] {
  const batch = events.slice(from, from + maxEvents);
  const last = batch.findIndex(createBatchLimit());
  return last === -1 ? batch : batch.slice(0, last + 1);
}

/** About how much text events become: the end of an item may repeat it three times, that of a turn all items. */
export function lengthOfText(events: readonly Event[], measure: Measure): number {
  return events.reduce((sum, event) => {
    if (event.type === "turn-end") return sum + lengthOfItems(event.answer.items, measure);
    return sum + lengthOf(event, measure) * (event.type === "item-end" ? 3 : 1);
  }, 0);
}

/** Takes events one after the other, and says of each whether it fills a batch. */
function createBatchLimit(): (event: Event) => boolean {
  let count = 0;
  let characters = 0;
  return (event) => {
    count += 1;
    characters += lengthOf(event, inCharacters);
    const isFull = count >= maxEvents || characters >= maxCharacters;
    if (isFull) count = characters = 0;
    return isFull;
  };
}

function lengthOf(event: Event, measure: Measure): number {
  switch (event.type) {
    case "item-delta":
      return measure(event.text);
    case "item-start":
    case "item-end":
      return lengthOfItem(event.item, measure);
    case "turn-queued":
    case "turn-start":
    case "turn-end":
      return 0;
  }
}
