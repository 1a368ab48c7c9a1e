/** Seals what a caller carries from turn to turn but cannot read: an answer's reasoning, or a compaction. */
import type { Compaction, Extra, Item } from "../../core/item.ts";
import type { Reference } from "../../core/turn.ts";
import { invalid, isObject, parseObject } from "../fields.ts";

/** Only the same owner can open what was sealed. */
export type SealOf = (owner: string) => Seal;

export interface Seal {
  seal(text: string): string;
  /** It was sealed here, for anyone. */
  isOurs(sealed: string): boolean;
  /** It was sealed by a gateway whose key is not known here, and may come with an archive. */
  mayOpenLater(sealed: string): boolean;
  /** Undefined if it was not sealed here for this owner. */
  open(sealed: string): string | undefined;
}

/** Which sealed forms a caller sees. */
export interface Sealing {
  readonly seal: Seal;
  /** Also those of reasoning; a compaction has no other form. */
  readonly showsSeals: boolean;
}

type Reasoning = Extract<Item, { type: "reasoning" }>;

/**
 * The reasoning and what the adapter has sealed of it, in one. Clients drop reasoning that has none, so there always is
 * one. `isSummarised`: the summary that the caller sees is not the item's own, which is then included.
 */
export function sealReasoning(item: Reasoning, seal: Seal, isSummarised: boolean): string {
  const { text, encrypted, extra, summary } = item;
  return seal.seal(JSON.stringify({ text, encrypted, extra, ...(isSummarised && { sections: summary }) }));
}

/** What a caller has sent back, and its path. */
export interface Brought {
  readonly sealed: string;
  readonly path: string;
}

/** What was sealed elsewhere is for an adapter that can read it; `open` is the item's readable part. */
export function openReasoning(
  brought: Brought | undefined,
  open: Pick<Reasoning, "summary" | "text">,
  seal: Seal,
): Reasoning {
  const { text, encrypted, extra, sections } = brought === undefined ? {} : openFields(brought, seal);
  if (typeof text !== "string") return { type: "reasoning", ...open, encrypted: brought?.sealed };
  return {
    type: "reasoning",
    summary: Array.isArray(sections) ? sections.filter((section) => typeof section === "string") : open.summary,
    text,
    encrypted: typeof encrypted === "string" ? encrypted : undefined,
    // Nobody else can have sealed it.
    ...(isObject(extra) && { extra: extra as unknown as Extra }),
  };
}

/** A caller may mix up what it carries, so each kind has its own fields; what was not sealed here has none. */
function openFields({ sealed, path }: Brought, seal: Seal): Readonly<Record<string, unknown>> {
  const opened = seal.open(sealed);
  if (opened === undefined && seal.isOurs(sealed)) refuseSealed(path);
  return opened === undefined ? {} : (parseObject(opened) ?? {});
}

/** How an item is read depends on the keys that are known. */
export function mayOpenLater(item: Item | Reference, seal: Seal): boolean {
  if (item.type !== "reasoning" && item.type !== "compaction") return false;
  return item.encrypted !== undefined && seal.mayOpenLater(item.encrypted);
}

function refuseSealed(path: string): never {
  const why = "It was sealed for another token's name or by an earlier version, or it was changed.";
  invalid(path, `Invalid '${path}': it cannot be opened. ${why} Leave this item out.`, "invalid_encrypted_content");
}

/** What only its maker can read stays as it came. */
export function sealCompaction({ summary, encrypted, kept }: Compaction, seal: Seal): string {
  return summary === "" && encrypted !== undefined ? encrypted : seal.seal(JSON.stringify({ summary, kept }));
}

export function openCompaction(brought: Brought, seal: Seal): Compaction {
  const { summary, kept } = openFields(brought, seal);
  if (typeof summary !== "string") return { type: "compaction", summary: "", encrypted: brought.sealed };
  // Nobody else can have sealed them.
  return { type: "compaction", summary, ...(Array.isArray(kept) && { kept: kept as readonly Item[] }) };
}
