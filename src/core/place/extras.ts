/** Merges what a caller's version carries beside its words (names, fields of its dialect) with what is remembered. */
import type { Content, Dialect, Extra, Item, Message, Part } from "../item.ts";
import { hasExtras, hasPartExtras, type Path, talkFrom, turnsOf } from "./path.ts";
import { isSameText, type Run, toSegments } from "./runs.ts";

/**
 * What the model sees of a path and of what is new, if the caller shows the path, or its end, in a `callerVersion` of its
 * own. Both have the same words, and so the same segments in which one side speaks, except that a caller may insert
 * words into the steps of a turn. What the model made keeps what it came with; of what a caller said, only what it shows
 * now counts.
 */
export function withExtras(
  items: readonly Item[],
  path: Path,
  callerVersion: readonly Item[],
  dialect: Dialect | undefined,
): readonly Item[] {
  const made = new Set(turnsOf(path).flatMap(({ output }) => output));
  const pairs: Pairs = { made, dialect, replaced: new Map(), leading: new Map() };
  const shown = toSegments(callerVersion).toReversed();
  const remembered = toSegments(talkFrom(path, 0)).toReversed();
  // A caller's version may begin late, but ends with the path.
  for (const [index, { side, items: ours }] of remembered.entries()) {
    const theirs = shown[index];
    if (theirs?.side !== side) break;
    if (!theirs.items.some(hasExtras) && !ours.some(hasExtras)) continue;
    if (side === "tools") pairOutputs(ours, theirs.items, pairs);
    else {
      pairMessages(side, ours, theirs.items, pairs);
      pairCalls(ours, theirs.items, pairs);
    }
  }
  return replace(items, pairs);
}

/** What is remembered, and what is shown of it. */
interface Pairs {
  /** Made by the model, not said by a caller. */
  readonly made: ReadonlySet<Item>;
  /** The caller's. */
  readonly dialect: Dialect | undefined;
  /** What replaces an item. */
  readonly replaced: Map<Item, readonly Item[]>;
  /** A message without words, for calls without a message; it goes before the first of them that is seen. */
  readonly leading: Map<Item, Message>;
}

function pairCalls(ours: readonly Item[], theirs: readonly Item[], pairs: Pairs): void {
  const shown = theirs.filter((item) => item.type === "tool-call");
  for (const [index, call] of ours.filter((item) => item.type === "tool-call").entries()) {
    pairs.replaced.set(call, [{ ...call, extra: extraOf(call, shown[index], pairs) }]);
  }
}

/** Outputs may come in any order, so they are matched by call. */
function pairOutputs(ours: readonly Item[], theirs: readonly Item[], pairs: Pairs): void {
  const shown = Map.groupBy(theirs, (item) => (item.type === "tool-output" ? item.callId : undefined));
  for (const output of ours) {
    const other = output.type === "tool-output" ? shown.get(output.callId)?.shift() : undefined;
    if (output.type !== "tool-output" || other?.type !== "tool-output") continue;
    const content = contentOf(output.output, other.output, pairs.dialect);
    pairs.replaced.set(output, [{ ...output, output: content, extra: extraOf(output, other, pairs) }]);
  }
}

/** The same words may be split into more messages, or fewer; a model that only calls says none. */
function pairMessages(side: Run["side"], ours: readonly Item[], theirs: readonly Item[], pairs: Pairs): void {
  const said = ours.filter((item) => item.type === "message");
  const shown = theirs.filter((item) => item.type === "message");
  const join = (message: Message, other: Message): Message => ({
    ...message,
    content: contentOf(message.content, other.content, pairs.dialect),
    name: other.name ?? message.name,
    extra: extraOf(message, other, pairs),
  });
  const [first] = said;
  if (said.length === shown.length) {
    for (const [index, message] of said.entries())
      pairs.replaced.set(message, [join(message, shown[index] ?? message)]);
  } else if (side === "caller") {
    for (const message of said) pairs.replaced.set(message, message === first ? shown : []);
  } else {
    const carriers = shown.filter(hasExtras);
    const last = carriers.at(-1);
    if (last === undefined) return;
    const name = carriers.findLast((message) => message.name !== undefined)?.name;
    const all = { ...last, name, extra: carriers.map(({ extra }) => extra).reduce(joinExtras) };
    if (first !== undefined) pairs.replaced.set(first, [join(first, all)]);
    else for (const item of ours) pairs.leading.set(item, all);
  }
}

/** An item has fields of one dialect. Those of a dialect other than the caller's cannot be shown, so they stay. */
function extraOf(
  ours: Item & { readonly extra?: Extra | undefined },
  theirs: { readonly extra?: Extra | undefined } | undefined,
  { made, dialect }: Pairs,
): Extra | undefined {
  const [remembered, shown] = [ours.extra, theirs?.extra];
  if (remembered === undefined) return shown;
  if (remembered.dialect !== (shown?.dialect ?? dialect)) return remembered;
  return made.has(ours) ? joinExtras(remembered, shown) : shown;
}

function joinExtras(one: Extra | undefined, other: Extra | undefined): Extra | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return { ...other, fields: { ...one.fields, ...other.fields } };
}

/** The caller's form of the words, if it or the remembered one has something beside a part of them. */
function contentOf(ours: Content, theirs: Content, dialect: Dialect | undefined): Content {
  const differs = hasPartExtras(theirs) || hasPartExtras(ours, dialect);
  if (!differs || !isSameText(ours, theirs)) return ours;
  if (typeof ours === "string" || typeof theirs === "string" || ours.length !== theirs.length) return theirs;
  return theirs.map((part, index) => withRemembered(part, ours[index], dialect));
}

/** Fields of a dialect other than the caller's cannot be shown, so they stay. */
function withRemembered(part: Part, remembered: Part | undefined, dialect: Dialect | undefined): Part {
  if (part.extra !== undefined) return part;
  const extra = remembered?.type === part.type ? remembered.extra : undefined;
  return extra === undefined || extra.dialect === dialect ? part : { ...part, extra };
}

function replace(items: readonly Item[], { replaced, leading }: Pairs): readonly Item[] {
  const seen: Item[] = [];
  /** Many calls may share it. */
  let last: Message | undefined;
  for (const item of items) {
    const lead = leading.get(item);
    if (lead !== undefined && lead !== last) {
      // Reasoning stands directly before what came of it.
      const place = seen.findLastIndex(({ type }) => type !== "reasoning") + 1;
      seen.splice(place, 0, lead);
      last = lead;
    }
    for (const each of replaced.get(item) ?? [item]) seen.push(each);
  }
  return seen;
}
