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
  const opened = sealed === undefined ? {} : openFields(sealed, seal);
  if (typeof opened["text"] !== "string") return { text, encrypted: sealed };
  const { encrypted } = opened;
  return { text: opened["text"], encrypted: typeof encrypted === "string" ? encrypted : undefined };
}

/** A caller may mix up what it carries, so each kind has fields of its own; what was not sealed here has none. */
function openFields(sealed: string, seal: Seal): Readonly<Record<string, unknown>> {
  const opened = seal.open(sealed);
  if (opened === undefined) return {};
  try {
    const value: unknown = JSON.parse(opened);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** What only its maker can read stays as it came. */
export function sealCompaction({ summary, encrypted }: Compaction, seal: Seal): string {
  return summary === "" && encrypted !== undefined ? encrypted : seal.seal(JSON.stringify({ summary }));
}

export function openCompaction(sealed: string, seal: Seal): Compaction {
  const { summary } = openFields(sealed, seal);
  return typeof summary === "string"
    ? { type: "compaction", summary }
    : { type: "compaction", summary: "", encrypted: sealed };
}
