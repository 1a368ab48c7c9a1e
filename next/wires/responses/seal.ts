/** Seals what a caller carries from turn to turn but cannot read: an answer's reasoning, or a compaction. */
import type { Compaction, Extra, Reasoning } from "../../core/item.ts";
import {
  type Fields,
  invalid,
  isObject,
  parseObject,
  pathOf,
  readObjects,
  readString,
  requireString,
} from "../fields.ts";
import type { Seal } from "../wire.ts";

/** All of it in one, with what the model's server sealed of it. Clients drop reasoning without a sealed form, so there always is one. */
export function sealReasoning({ summary, text, encrypted, extra }: Reasoning, seal: Seal): string {
  return seal.seal(JSON.stringify({ summary, text, encrypted, extra }));
}

/** What was sealed here says all; what was sealed elsewhere is for whoever can read it. */
export function readReasoning(item: Fields, seal: Seal): Reasoning {
  const [texts, summary] = [readTexts(item, "content"), readTexts(item, "summary")];
  const sealed = readString(item, "encrypted_content");
  const opened = sealed === undefined ? undefined : open(item, sealed, seal);
  if (typeof opened?.["text"] !== "string")
    return { type: "reasoning", summary, text: texts.join(""), encrypted: sealed };
  const { text, encrypted, extra } = opened;
  return {
    type: "reasoning",
    summary: Array.isArray(opened["summary"]) ? opened["summary"] : summary,
    text,
    ...(typeof encrypted === "string" && { encrypted }),
    // Nobody else can have sealed it.
    ...(isObject(extra) && { extra: extra as unknown as Extra }),
  };
}

function readTexts(item: Fields, key: string): readonly string[] {
  return (readObjects(item, key) ?? []).map((part) => requireString(part, "text"));
}

/** What only its maker can read stays as it came. */
export function sealCompaction({ summary, encrypted }: Compaction, seal: Seal): string {
  return summary === "" && encrypted !== undefined ? encrypted : seal.seal(JSON.stringify({ summary }));
}

export function readCompaction(item: Fields, seal: Seal): Compaction {
  const sealed = requireString(item, "encrypted_content");
  const summary = open(item, sealed, seal)?.["summary"];
  if (typeof summary === "string") return { type: "compaction", summary };
  return { type: "compaction", summary: "", encrypted: sealed };
}

/** A caller may mix up what it carries, so each kind has its own fields; undefined: it was not sealed here. */
function open(item: Fields, sealed: string, seal: Seal): Readonly<Record<string, unknown>> | undefined {
  const opened = seal.open(sealed);
  if (opened !== undefined) return parseObject(opened);
  if (!seal.isOurs(sealed)) return undefined;
  const path = pathOf(item, "encrypted_content");
  const why = "It was sealed for another token's name or by another gateway, or it was changed.";
  invalid(path, `Invalid '${path}': it cannot be opened. ${why} Leave this item out.`, "invalid_encrypted_content");
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
  if (at === -1) return encrypted;
  return encrypted.slice(0, at) === source ? encrypted.slice(at + 1) : undefined;
}
