/** Checks what no form can: how an archive's texts are nested, and whether the parts of a turn fit together. */
import { memoForm } from "./forms.ts";
import type { ItemDelta } from "../core/event.ts";
import { maxPieces, type Pieces } from "../core/frame/pieces.ts";
import type { Item } from "../core/item.ts";
import { lookThrough } from "../core/json-shape.ts";
import type { StoredTurn } from "../core/store.ts";

/** What does not fit, and why; undefined if all does, so that a replay of the turn need not check. */
export function findMisfit({ output, told }: Pick<StoredTurn, "output" | "told">): string | undefined {
  const { memo, pieces = [] } = told ?? {};
  const wrongMemo = memo === undefined ? undefined : judgeMemo(memo);
  if (wrongMemo !== undefined) return `'told.memo' ${wrongMemo}`;
  if (countPieces(pieces) > maxPieces) return `'told.pieces' has more than ${maxPieces} pieces`;
  for (const [index, stretches] of pieces.entries()) {
    const item = output[index];
    if (item === undefined || suits(stretches, item)) continue;
    return `'told.pieces.${index}' describes more than its item contains`;
  }
  return undefined;
}

function judgeMemo(memo: string): string | undefined {
  const badShape = findBadShape(memo);
  if (badShape !== undefined) return badShape;
  try {
    return memoForm.Check(JSON.parse(memo)) ? undefined : "is not what a gateway stores about a request";
  } catch {
    return "is not JSON";
  }
}

/** Each becomes an event on replay, even one without text; a stretch without pieces is at most a mark. */
function countPieces(pieces: Pieces): number {
  let count = 0;
  for (const stretches of pieces) for (const { lengths } of stretches) count += Math.max(1, lengths.length);
  return count;
}

function suits(stretches: Pieces[number], item: Item): boolean {
  // It replaces a deleted item, whose pieces are still there.
  if (item.type === "tool-output") return true;
  const told = new Map<string, number>();
  for (const { kind, part, lengths } of stretches) {
    const sum = kind === "annotation" ? lengths.length : lengths.reduce((all, length) => all + length, 0);
    const name = `${kind} ${part}`;
    const length = (told.get(name) ?? 0) + sum;
    if (length > lengthOf(item, kind, part)) return false;
    told.set(name, length);
  }
  return true;
}

/** How much of an item can be told in pieces of a kind; negative if the item has nothing of that kind. */
function lengthOf(item: Exclude<Item, { type: "tool-output" }>, kind: ItemDelta["kind"], part: number): number {
  switch (item.type) {
    case "message": {
      const { content, extra } = item;
      if (kind === "extra") return part === 0 && extra !== undefined ? 0 : none;
      if (typeof content === "string") return kind === "text" && part === 0 ? content.length : none;
      const said = content[part];
      if (said?.type === "text" && kind === "annotation") return said.annotations?.length ?? 0;
      return (said?.type === "text" || said?.type === "refusal") && said.type === kind ? said.text.length : none;
    }
    case "reasoning":
      if (kind === "summary") return item.summary[part]?.length ?? none;
      return kind === "reasoning" && part === 0 ? item.text.length : none;
    case "tool-call":
      if (part !== 0) return none;
      if (kind === "extra") return item.extra === undefined ? none : Object.keys(item.extra.fields).length;
      return kind === "arguments" ? item.arguments.length : none;
    case "compaction":
    case "other":
      return none;
  }
}

const none = -1;

/** Bodies may nest 64 levels unless the operator allows more; no store writes out what is nested deeper than this. */
const maxDepth = 3_000;
/** Each takes about 100 bytes of memory. A request has at most a million, an answer few but its log probabilities. */
const maxContainers = 4_000_000;

/** What is wrong with a text's nesting; undefined if it may be parsed. Only parsing tells whether it is JSON. */
export function findBadShape(text: string): string | undefined {
  const { depth, containers } = lookThrough(text, { depth: maxDepth, containers: maxContainers, members: Infinity });
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  if (containers > maxContainers) return `has more than ${maxContainers} objects and lists in it`;
  return undefined;
}
