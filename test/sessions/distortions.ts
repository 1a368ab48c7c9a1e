/** What clients do to a history unintentionally: other ways to write the same content. */
import type { Content, Item, Message } from "../../src/core/item.ts";

export interface Distortion {
  readonly blanks: boolean;
  readonly lineEnds: boolean;
  readonly parts: boolean;
  readonly merge: boolean;
  readonly withoutReasoning: boolean;
  readonly serialise: boolean;
  readonly reorder: boolean;
  /** Calls and their outputs get the client's own ids. */
  readonly rename: boolean;
  /** Which items it applies to. */
  readonly salt: number;
}

export function distort(items: readonly Item[], distortion: Distortion): readonly Item[] {
  const remaining = distortion.withoutReasoning ? items.filter((item) => item.type !== "reasoning") : items;
  const merged = distortion.merge ? mergeAdjacent(remaining) : remaining;
  const ordered = distortion.reorder ? swapOutputs(merged) : merged;
  const named = distortion.rename ? ordered.map(rename) : ordered;
  return named.map((item, index) => (appliesTo(distortion.salt, index) ? rewrite(item, distortion) : item));
}

function appliesTo(salt: number, index: number): boolean {
  return Math.imul(salt + index * 7 + 1, 0x9e3779b1) >>> 30 !== 0;
}

function rewrite(item: Item, distortion: Distortion): Item {
  switch (item.type) {
    case "message":
      return { ...item, content: rewriteContent(item.content, distortion) };
    case "tool-output":
      return { ...item, output: rewriteContent(item.output, distortion) };
    case "tool-call":
      return distortion.serialise
        ? { ...item, arguments: JSON.stringify(turnKeys(JSON.parse(item.arguments)), undefined, 2) }
        : item;
    case "reasoning":
    case "compaction":
    case "other":
      return item;
  }
}

function rewriteContent(content: Content, distortion: Distortion): Content {
  if (typeof content !== "string") return content;
  let text = content;
  if (distortion.blanks) text = `${text.replaceAll("\n", " \t\n")}  \n`;
  if (distortion.lineEnds) text = text.replaceAll("\n", "\r\n");
  if (!distortion.parts) return text;
  const cut = text.indexOf("\n") + 1;
  const texts = cut === 0 || cut === text.length ? [text] : [text.slice(0, cut), text.slice(cut)];
  return texts.map((each) => ({ type: "text", text: each }));
}

/** Some clients allow no two consecutive messages of one role. */
function mergeAdjacent(items: readonly Item[]): readonly Item[] {
  const merged: Item[] = [];
  for (const item of items) {
    const last = merged.at(-1);
    if (isPlain(item) && last !== undefined && isPlain(last) && last.role === item.role) {
      merged[merged.length - 1] = { ...last, content: `${last.content}\n\n${item.content}` };
    } else merged.push(item);
  }
  return merged;
}

function isPlain(item: Item): item is Message & { content: string } {
  return item.type === "message" && typeof item.content === "string";
}

function swapOutputs(items: readonly Item[]): readonly Item[] {
  const swapped = [...items];
  for (let index = 0; index + 1 < swapped.length; index++) {
    const [left, right] = [swapped[index], swapped[index + 1]];
    if (left?.type !== "tool-output" || right?.type !== "tool-output") continue;
    [swapped[index], swapped[index + 1]] = [right, left];
  }
  return swapped;
}

function rename(item: Item): Item {
  return item.type === "tool-call" || item.type === "tool-output" ? { ...item, callId: `own-${item.callId}` } : item;
}

function turnKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turnKeys);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).toReversed();
  return Object.fromEntries(entries.map(([key, inner]) => [key, turnKeys(inner)]));
}
