/** Agents ask for the title of a conversation in the same session, before it begins, while it does or afterwards. */
import { isSteering, type Item } from "../item.ts";
import type { Ask } from "../turn.ts";
import type { Path } from "./path.ts";
import { canonOf, sideOf } from "./runs.ts";

/**
 * Whether a request may be the next of one that is still being answered, the first of its session: who has other instructions
 * has another conversation.
 */
export function mayFollow(first: Ask<Item>, ask: Ask<Item>): boolean {
  const own = instructionsOf(ask);
  return own === "" || isAlike(own, instructionsOf(first));
}

/** Who asks the session's first question once more, under other instructions, does not go on with it. */
export function asksAnew(path: Path, items: readonly Item[]): boolean {
  const before = path.steering.filter(isInstruction);
  if (path.length !== 1 || before.length === 0) return false;
  const own = items.filter(isInstruction);
  const asked = path.tip?.input.findLast(isQuestion);
  if (own.length === 0 || asked === undefined) return false;
  const isAsked = items.some((item) => isQuestion(item) && textOf([item]) === textOf([asked]));
  return isAsked && !isAlike(textOf(own), textOf(before));
}

/**
 * Of the two, whether the request is the conversation: a title is asked for with more words than the question itself, or
 * else without tools.
 */
export function isConversation({ items, settings }: Ask<Item>, { tip }: Path): boolean {
  const more = items.filter(isQuestion).length - (tip?.input ?? []).filter(isQuestion).length;
  return more < 0 || (more === 0 && settings.tools.length > 0);
}

function instructionsOf({ items, settings: { instructions = "" } }: Ask<Item>): string {
  return `${instructions}\n${textOf(items.filter(isSteering))}`.trim();
}

/** Tools and settings that items bring along are no other instructions. */
function isInstruction(item: Item): boolean {
  return item.type === "message" && isSteering(item);
}

function isQuestion(item: Item): boolean {
  return sideOf(item) === "caller";
}

function textOf(items: readonly Item[]): string {
  return items.map((item) => (item.type === "message" ? canonOf(item.content) : "")).join("\n");
}

/** The same instructions, though a time or a reminder in them may be another: they have most of their words in common. */
function isAlike(one: string, other: string): boolean {
  if (one === other) return true;
  const [ours, theirs] = [vocabularyOf(one), vocabularyOf(other)];
  return ours.intersection(theirs).size * 2 >= ours.union(theirs).size;
}

function vocabularyOf(text: string): ReadonlySet<string> {
  return new Set(text.slice(0, enoughCharacters).replaceAll(/\d+/g, "0").split(/\s+/));
}

/** Instructions may be as long as a book, which no request shall wait for to be compared. */
const enoughCharacters = 50_000;
