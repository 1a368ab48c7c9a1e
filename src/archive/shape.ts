/** Says what is wrong with how a text of an archive is built, before it is parsed. */
import { lookThrough } from "../core/json-shape.ts";

/** Bodies are nested by 64 levels unless the operator allows more; what is nested deeper than this is written out by no store. */
const maxDepth = 3_000;
/** Each takes about a hundred bytes of memory. A request has a million at most, and an answer few beside its log probabilities. */
const maxContainers = 4_000_000;

/** Nothing: it may be parsed. Whether it is JSON is found out then. */
export function findBadShape(text: string): string | undefined {
  const { depth, containers } = lookThrough(text, { depth: maxDepth, containers: maxContainers, members: Infinity });
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  if (containers > maxContainers) return `has more than ${maxContainers} objects and lists in it`;
  return undefined;
}
