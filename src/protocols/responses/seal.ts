/** What a caller carries from turn to turn and cannot read: the reasoning of an answer, and a conversation made short. */
import type { Compaction, Item } from "../../core/item.ts";
import { isObject } from "../fields.ts";

export interface Seal {
  seal(text: string): string;
  /** Nothing when it was not sealed here. */
  open(sealed: string): string | undefined;
}

/** Which opaque forms a caller is shown. */
export interface Sealing {
  readonly seal: Seal;
  /** Those of reasoning too; a conversation made short has no other form. */
  readonly showsSeals: boolean;
}

type Reasoning = Extract<Item, { type: "reasoning" }>;

/** The reasoning itself and what the adapter has sealed of it, in one; nothing when there is neither. */
export function sealReasoning({ text, encrypted }: Reasoning, seal: Seal): string | undefined {
  return text === "" && encrypted === undefined ? undefined : seal.seal(JSON.stringify({ text, encrypted }));
}

/** What was sealed elsewhere is for an adapter that can read it; `text` is what the item says in the open. */
export function openReasoning(
  sealed: string | undefined,
  text: string,
  seal: Seal,
): Pick<Reasoning, "text" | "encrypted"> {
  const opened = sealed === undefined ? undefined : seal.open(sealed);
  return (opened === undefined ? undefined : readReasoning(opened)) ?? { text, encrypted: sealed };
}

/** A caller may have mixed up what it carries: a conversation made short is no reasoning. */
function readReasoning(opened: string): Pick<Reasoning, "text" | "encrypted"> | undefined {
  const value = parse(opened);
  if (!isObject(value) || typeof value["text"] !== "string") return undefined;
  const { text, encrypted } = value;
  return { text, encrypted: typeof encrypted === "string" ? encrypted : undefined };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What only its maker can read stays as it came. */
export function sealCompaction({ summary, encrypted }: Compaction, seal: Seal): string {
  return summary === "" && encrypted !== undefined ? encrypted : seal.seal(summary);
}

export function openCompaction(sealed: string, seal: Seal): Compaction {
  const summary = seal.open(sealed);
  return summary === undefined
    ? { type: "compaction", summary: "", encrypted: sealed }
    : { type: "compaction", summary };
}
