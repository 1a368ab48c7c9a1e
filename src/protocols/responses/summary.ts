/** Presents reasoning as its own summary: clients made for models that hide it show nothing else. */
import type { ItemDelta, OutputItem } from "../../core/event.ts";
import { cutItem, type Pieces } from "../../core/frame/pieces.ts";
import type { Echo } from "./request.ts";

/** Whether the caller asked for a summary, in any form. */
export function wantsSummary({ reasoning }: Echo): boolean {
  return reasoning.summary !== null;
}

/** A reasoning item while it is sent. */
export interface ReasoningSummary {
  /** The delta as sent to the caller. */
  accept(delta: ItemDelta): ItemDelta;
  /** The sections sent; undefined if the item is sent as it is. */
  sections(): readonly string[] | undefined;
}

/**
 * The item's beginning decides, as nobody waits for the rest: one that begins with a summary is sent as it is; if it
 * begins with text, everything in it becomes sections, including a later summary.
 */
export function createReasoningSummary(): ReasoningSummary {
  const sections: string[] = [];
  let isSummarised: boolean | undefined;
  let last: ItemDelta | undefined;
  return {
    accept(delta) {
      isSummarised ??= delta.kind === "reasoning";
      if (!isSummarised) return delta;
      if (last?.kind !== delta.kind || last.part !== delta.part) sections.push("");
      last = delta;
      const part = sections.length - 1;
      sections[part] += delta.text;
      return { ...delta, kind: "summary", part };
    },
    sections: () => (isSummarised === true ? sections : undefined),
  };
}

/** The same for a complete item; `segments` give the order in which it was sent. */
export function toSections(item: OutputItem, segments?: Pieces[number]): readonly string[] | undefined {
  if (item.type !== "reasoning" || item.text === "") return undefined;
  if (item.summary.length === 0) return [item.text];
  const reasoningSummary = createReasoningSummary();
  for (const delta of cutItem(item, 0, segments)) reasoningSummary.accept(delta);
  return reasoningSummary.sections();
}
