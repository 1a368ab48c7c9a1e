/** Compacts a conversation that has become too long, and answers it in the same turn. */
import type { Delta, Deltas } from "../delta.ts";
import { isSteering, type Item, sizeOfItems } from "../item.ts";
import { sinceCompaction } from "../place/context.ts";
import type { Ask, Settings, Turn, Usage } from "../turn.ts";
import { addUsage, summarise } from "./compact.ts";
import { fixedTexts, type FitParts, reserveOf } from "./fit.ts";
import { countItems, surelyFits } from "./tokens.ts";
import { divideAtNewest } from "./window.ts";

/** How many tokens a turn's conversation may have before it is compacted; undefined: that is not ours to do. */
export function limitOf({ adapter }: FitParts, ask: Ask<Item>): number | undefined {
  const { compactsBeyond, compacts, model, settings } = ask;
  if (compactsBeyond === undefined || compacts === true) return undefined;
  const { native } = settings;
  // It has the caller's own field.
  if (native && (adapter.speaksFor?.(model) ?? adapter.speaks)?.includes(native.dialect)) return undefined;
  const window = adapter.contextWindow?.(model) ?? Infinity;
  const room = window - reserveOf(settings, window, "auto");
  const tokens = Math.min(compactsBeyond.tokens ?? Infinity, room);
  return tokens < Infinity ? tokens : undefined;
}

/** The settings without the caller's own field for the limit, as it is honoured here. */
export function withoutLimit(settings: Settings, { compactsBeyond }: Ask<Item>): Settings {
  const { native } = settings;
  if (native === undefined) return settings;
  return {
    ...settings,
    native: { ...native, offers: native.offers?.filter((name) => name !== compactsBeyond?.param) },
  };
}

/**
 * What the model answers, after a compaction if the conversation has more than `limit` tokens. Nothing is said before
 * the first word of the answer: until then a failure is the whole turn's.
 */
export async function* compactFirst(
  parts: FitParts,
  turn: Turn,
  limit: number,
  itemsParam: string,
  stream: (turn: Turn) => AsyncIterable<readonly Delta[]>,
  answer: (items: readonly Item[]) => AsyncIterable<readonly Delta[]>,
): Deltas {
  const divided = await divide(parts, turn, limit);
  if (divided === undefined) return yield* answer(turn.items);
  const { older: items, kept } = divided;
  let summary = "";
  let usage: Usage | undefined;
  for await (const batch of summarise(parts, { ...turn, items }, itemsParam, stream)) {
    for (const delta of batch) {
      if (delta.type === "compaction") ({ summary } = delta);
      else if (delta.type === "usage") ({ usage } = delta);
    }
  }
  const compaction = { type: "compaction", summary, kept } as const;
  let early: readonly Delta[] = usage === undefined ? [compaction] : [compaction, { type: "usage", usage }];
  for await (const batch of answer(sinceCompaction([compaction]))) {
    yield early.concat(batch.map((delta) => withUsage(delta, usage)));
    early = [];
  }
  if (early.length > 0) yield early;
}

function withUsage(delta: Delta, before: Usage | undefined): Delta {
  return delta.type === "usage" ? { ...delta, usage: addUsage(before, delta.usage) } : delta;
}

/** What to compact and what to keep; undefined: it is short enough, or there is little to compact. */
async function divide({ tokenCounter }: FitParts, { items, settings }: Turn, limit: number) {
  const fixed = fixedTexts(settings);
  if (surelyFits(items, fixed, limit)) return undefined;
  const count = await tokenCounter();
  if (countItems(items, fixed, count) <= limit) return undefined;
  const { older, newest } = divideAtNewest(items, (tail) => countItems(tail, [], count) <= limit / 2);
  const stays = new Set(newest);
  // What has been compacted would not become shorter.
  const goes = older.filter((item) => !isSteering(item) && item.type !== "compaction" && !stays.has(item));
  // Where instructions, tools or the question alone exceed the limit, every step of an agent would be compacted.
  if (countItems(goes, [], count) < limit / 8) return undefined;
  const kept = items.filter((item) => isSteering(item) || stays.has(item));
  return sizeOfItems(kept) > maxKeptCharacters ? undefined : { older, kept };
}

/** A picture in the newest message would travel with the compaction from then on; in the next turn it is older. */
const maxKeptCharacters = 1024 * 1024;
