/** What a caller carries from turn to turn and cannot read: the reasoning of an answer, and a conversation made short. */
import { GatewayError } from "../../core/errors.ts";
import type { Compaction, Item } from "../../core/item.ts";
import { isObject } from "../fields.ts";

/** What an owner seals only the same owner can open. */
export type SealOf = (owner: string) => Seal;

export interface Seal {
  seal(text: string): string;
  /** It was sealed here, for whomever. */
  isOurs(sealed: string): boolean;
  /** Nothing when it was not sealed here for this owner. */
  open(sealed: string): string | undefined;
}

/** Which opaque forms a caller is shown. */
export interface Sealing {
  readonly seal: Seal;
  /** Those of reasoning too; a conversation made short has no other form. */
  readonly showsSeals: boolean;
}

type Reasoning = Extract<Item, { type: "reasoning" }>;

/**
 * The reasoning itself and what the adapter has sealed of it, in one. Clients let fall what has none, so there always is one.
 * `isRetold`: the summary that the caller sees is not the item's own, which goes along then.
 */
export function sealReasoning({ text, encrypted, summary }: Reasoning, seal: Seal, isRetold: boolean): string {
  return seal.seal(JSON.stringify({ text, encrypted, ...(isRetold && { sections: summary }) }));
}

/** What a caller has brought back, and where it stands. */
export interface Brought {
  readonly sealed: string;
  readonly path: string;
}

/** What was sealed elsewhere is for an adapter that can read it; `open` is what the item says in the open. */
export function openReasoning(
  brought: Brought | undefined,
  open: Pick<Reasoning, "summary" | "text">,
  seal: Seal,
): Reasoning {
  const { text, encrypted, sections } = brought === undefined ? {} : openFields(brought, seal);
  if (typeof text !== "string") return { type: "reasoning", ...open, encrypted: brought?.sealed };
  return {
    type: "reasoning",
    summary: Array.isArray(sections) ? sections.filter((section) => typeof section === "string") : open.summary,
    text,
    encrypted: typeof encrypted === "string" ? encrypted : undefined,
  };
}

/** A caller may mix up what it carries, so each kind has fields of its own; what was not sealed here has none. */
function openFields({ sealed, path }: Brought, seal: Seal): Readonly<Record<string, unknown>> {
  const opened = seal.open(sealed);
  if (opened === undefined && seal.isOurs(sealed)) throw notForYou(path);
  if (opened === undefined) return {};
  try {
    const value: unknown = JSON.parse(opened);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function notForYou(path: string): GatewayError {
  return new GatewayError(
    "invalid_value",
    `Invalid '${path}': it cannot be opened. It was sealed for another token's name or by an earlier version, or it was changed. Leave this item out.`,
    { param: path, wireCode: "invalid_encrypted_content" },
  );
}

/** What only its maker can read stays as it came. */
export function sealCompaction({ summary, encrypted }: Compaction, seal: Seal): string {
  return summary === "" && encrypted !== undefined ? encrypted : seal.seal(JSON.stringify({ summary }));
}

export function openCompaction(brought: Brought, seal: Seal): Compaction {
  const { summary } = openFields(brought, seal);
  return typeof summary === "string"
    ? { type: "compaction", summary }
    : { type: "compaction", summary: "", encrypted: brought.sealed };
}
