/** Tells a request for a title from its conversation: agents send one in its session, before, during or after. */
import { isSteering, type Item } from "../item.ts";
import type { Ask } from "../turn.ts";
import type { Path } from "./path.ts";
import { sideOf, wordsOf } from "./runs.ts";

/**
 * Whether a request may follow one that is still being answered, the first of its session: other instructions mean
 * another conversation.
 */
export function mayFollow(first: Ask<Item>, ask: Ask<Item>): boolean {
  const own = instructionsOf(ask);
  return own === "" || isAlike(own, instructionsOf(first));
}

/** A request that repeats the session's first question under other instructions does not continue it. */
export function restartsConversation(path: Path, items: readonly Item[]): boolean {
  const before = path.steering.filter(isInstruction);
  if (path.length !== 1 || before.length === 0) return false;
  const own = items.filter(isInstruction);
  const asked = path.tip?.input.findLast(isQuestion);
  if (own.length === 0 || asked === undefined) return false;
  const isAsked = items.some((item) => isQuestion(item) && textOf([item]) === textOf([asked]));
  return isAsked && !isAlike(textOf(own), textOf(before));
}

/**
 * Of the two, whether the request is the conversation: a title is asked for with more user messages than it, or else
 * without tools.
 */
export function isConversation({ items, settings }: Ask<Item>, { tip }: Path): boolean {
  const more = items.filter(isQuestion).length - (tip?.input ?? []).filter(isQuestion).length;
  return more < 0 || (more === 0 && settings.tools.length > 0);
}

function instructionsOf({ items, settings: { instructions = "" } }: Ask<Item>): string {
  return `${instructions}\n${textOf(items.filter(isSteering))}`.trim();
}

/** Tools and settings that items bring along are not instructions. */
function isInstruction(item: Item): boolean {
  return item.type === "message" && isSteering(item);
}

function isQuestion(item: Item): boolean {
  return sideOf(item) === "caller";
}

function textOf(items: readonly Item[]): string {
  return items.map((item) => (item.type === "message" ? wordsOf(item.content) : "")).join("\n");
}

/** The same instructions, even if a time or a reminder in them differs: they share at least half of their words. */
function isAlike(one: string, other: string): boolean {
  const [ours, theirs] = [vocabularyOf(one), vocabularyOf(other)];
  return ours.intersection(theirs).size * 2 >= ours.union(theirs).size;
}

function vocabularyOf(text: string): ReadonlySet<string> {
  return new Set(text.slice(0, enoughCharacters).replaceAll(/\d+/g, "0").split(/\s+/));
}

/** Instructions may be as long as a book; no request should wait for their comparison. */
const enoughCharacters = 50_000;
