/** Seals what a caller carries from turn to turn but cannot read: an answer's reasoning, or a compaction. */
import type { Compaction, Reasoning } from "../../core/item.ts";
import { type Fields, invalid, isObject, parseObject, pathOf, readString, type Said } from "../fields.ts";
import type { Seal } from "../wire.ts";

/** All of it, with what the model's server sealed or signed. Clients drop reasoning without a sealed form, so there always is one. */
export function sealItem(item: Reasoning | Compaction, seal: Seal): string {
  return seal.seal(JSON.stringify({ ...item, id: undefined }));
}

/** Undefined: it was not sealed here. What was is what it was sealed as, though callers may mix up reasoning and compactions. */
export function openItem(item: Fields, seal: Seal): Reasoning | Compaction | undefined {
  const sealed = readString(item, "encrypted_content");
  if (sealed === undefined || !seal.isOurs(sealed)) return undefined;
  const opened = seal.open(sealed);
  const found = opened === undefined ? undefined : parseObject(opened);
  if (found !== undefined && isSealable(found)) return found as unknown as Reasoning | Compaction;
  const path = pathOf(item, "encrypted_content");
  const why = "It was sealed for another token's name or by another gateway, or it was changed.";
  invalid(path, `Invalid '${path}': it cannot be opened. ${why} Leave this item out.`, "invalid_encrypted_content");
}

/** Other texts are sealed too, such as a caller's `user`, and the maker of an imported archive knows its keys. */
function isSealable({ type, summary, text, encrypted, extra }: Said): boolean {
  if (encrypted !== undefined && typeof encrypted !== "string") return false;
  if (type === "compaction") return typeof summary === "string";
  const isWhole = extra === undefined || (isObject(extra) && isObject(extra["fields"]));
  const isRead = Array.isArray(summary) && summary.every((section) => typeof section === "string");
  return type === "reasoning" && isRead && typeof text === "string" && isWhole;
}

/** For what a server sends: it is never sealed here. */
export const noSeal: Seal = { seal: (text) => text, isOurs: () => false, open: () => undefined };

/** What a server sealed goes back to it alone: its address stands before it, for what is sealed has no blanks. */
export function markSource(encrypted: string, source: string): string {
  return `${source} ${encrypted}`;
}

/** Undefined: another server made it. What a caller brought from elsewhere says nothing of its maker. */
export function toItsSource(encrypted: string, source: string): string | undefined {
  const at = encrypted.indexOf(" ");
  return at === -1 || encrypted.slice(0, at) === source ? encrypted.slice(at + 1) : undefined;
}
