/** Tells reasoning as its own summary: clients made for models that hide what they think show nothing else. */
import type { ItemDelta, OutputItem } from "../../core/event.ts";
import { cutItem, type Pieces } from "../../core/frame/pieces.ts";
import type { Echo } from "./object.ts";

/** Whether the caller of a response asked for a summary, in whatever form. */
export function wantsSummary({ reasoning }: Echo): boolean {
  return reasoning.summary !== null;
}

/** An item of reasoning while it is told. */
export interface Retelling {
  /** The delta as the caller is told it. */
  hear(delta: ItemDelta): ItemDelta;
  /** The sections that were told; nothing: the item is told as it is. */
  sections(): readonly string[] | undefined;
}

/**
 * How the item begins decides, as nobody waits for what may come: one that begins with a summary of its own is told as it
 * is; of one that begins with its text all is a section, a summary that still comes too.
 */
export function createRetelling(): Retelling {
  const sections: string[] = [];
  let isRetold: boolean | undefined;
  let last: ItemDelta | undefined;
  return {
    hear(delta) {
      isRetold ??= delta.kind === "reasoning";
      if (!isRetold) return delta;
      if (last?.kind !== delta.kind || last.part !== delta.part) sections.push("");
      last = delta;
      const part = sections.length - 1;
      sections[part] += delta.text;
      return { ...delta, kind: "summary", part };
    },
    sections: () => (isRetold === true ? sections : undefined),
  };
}

/** The same of an item that is whole; `stretches` say in which order it was told. */
export function toSections(item: OutputItem, stretches?: Pieces[number]): readonly string[] | undefined {
  if (item.type !== "reasoning" || item.text === "") return undefined;
  if (item.summary.length === 0) return [item.text];
  const retelling = createRetelling();
  for (const delta of cutItem(item, 0, stretches)) retelling.hear(delta);
  return retelling.sections();
}
