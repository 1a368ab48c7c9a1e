/** Checks what no form can: how an archive's texts are nested, what a memo holds, and how many pieces a turn has. */
import { memoForm } from "./forms.ts";
import { maxPieces, type Pieces } from "../core/frame/pieces.ts";
import { lookThrough } from "../core/json-shape.ts";
import type { StoredTurn } from "../core/store.ts";

/** What does not fit, and why; undefined if all does. Pieces that exceed their item are empty when replayed. */
export function findMisfit({ told }: Pick<StoredTurn, "told">): string | undefined {
  const { memo, pieces = [] } = told ?? {};
  const wrongMemo = memo === undefined ? undefined : judgeMemo(memo);
  if (wrongMemo !== undefined) return `'told.memo' ${wrongMemo}`;
  if (countPieces(pieces) > maxPieces) return `'told.pieces' has more than ${maxPieces} pieces`;
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

/** Each becomes an event on replay, even one without text; a segment without pieces is at most a mark. */
function countPieces(pieces: Pieces): number {
  let count = 0;
  for (const segments of pieces) for (const { lengths } of segments) count += Math.max(1, lengths.length);
  return count;
}

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
