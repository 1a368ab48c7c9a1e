/** What the model sees: the path before this turn, then what the caller sent, in real roles. */
import { shownSuffix } from "../conversation/address.ts";
import { withExtras } from "./extras.ts";
import { GatewayError } from "../errors.ts";
import { type Item, isSteering } from "../item.ts";
import { amidTalk, itemsOf, keepsSome, type Path, talkFrom, turnsOf } from "./path.ts";
import type { Place } from "./place.ts";
import { sideOf } from "./runs.ts";
import { readShown, rejoin } from "./shown.ts";
import { changesSettings, mergeSteering, readInstructions, withInnerInstructions } from "./steering.ts";
import type { PathTurn } from "../store.ts";
import { checkOutputs, type Pairs, pairTools } from "./tools.ts";
import type { Ask } from "../turn.ts";

export function assembleContext(place: Place, ask: Ask<Item>): readonly Item[] {
  const { path, version } = place;
  const said = assemble(place, ask);
  const items = version?.use === "merged" ? withExtras(said, path, version.items, ask.settings.native?.dialect) : said;
  if (!isCompacted(place)) return items;
  return sinceCompaction(items, place.by !== "hint" || path.length === 0 || inherits(place, ask));
}

/** Whether there may be a compaction that keeps something; a long path need not be searched for it. */
function isCompacted({ path, version, base, input }: Place): boolean {
  return path.isCompacted || version?.use === "instead" || base.some(keepsSome) || input.some(keepsSome);
}

/**
 * The newest compaction that keeps something, with that, and what follows; nothing that was said before it. Its own
 * system messages are those of then, so they apply only if there are no others, and not unless earlier ones do.
 */
export function sinceCompaction(items: readonly Item[], appliesEarlier = true): readonly Item[] {
  const at = items.findLastIndex(keepsSome);
  const compaction = items[at];
  if (compaction?.type !== "compaction") return items;
  const { kept = [], ...summary } = compaction;
  const [own, said] = [items.slice(0, at).filter(isSteering), kept.filter((item) => !isSteering(item))];
  const steering = own.length > 0 || !appliesEarlier ? own : kept.filter(isSteering);
  return steering.concat(summary, said, items.slice(at + 1));
}

function assemble(place: Place, ask: Ask<Item>): readonly Item[] {
  const { path, version, by } = place;
  if (path.length === 0) return checkTools(pairTools(ask.items), place, ask);
  const told = place.base.concat(place.input);
  if (by !== "hint") return assembleNamed(place, ask, told);
  const own = steering(place, ask);
  if (version?.use === "verbatim") {
    const unsaid = own.filter((item) => !place.input.includes(item));
    return unsaid.length > 0 ? unsaid.concat(ask.items) : ask.items;
  }
  const { front, callerVersion, notes } = readInstructions(own, readShown(ask.items));
  const news = place.input.filter((item) => !isSteering(item) || notes.has(item));
  const loose = talkFrom(path, path.settled).concat(place.base, news);
  const isRewritten = path.isAbridged || callerVersion !== undefined;
  const pairs = isRewritten ? undefined : pairTools(loose);
  // A repeated or late output of an older call requires all of the talk.
  if (pairs?.strays.size === 0) return amidTalk(front, path, checkTools(pairs, place, ask));
  const said = version?.use === "instead" ? version.items : talkOf(path, told).filter((item) => !isSteering(item));
  const before = said.concat(place.base);
  const talk = callerVersion === undefined ? before : withInnerInstructions(before, callerVersion);
  return front.concat(checkTools(pairTools(talk.concat(news)), place, ask));
}

/** A path that a request names is shown as it is, with its system messages where they were sent. */
function assembleNamed(place: Place, ask: Ask<Item>, told: readonly Item[]): readonly Item[] {
  const { path } = place;
  const isTalk = !path.isAbridged && path.steering.length === 0;
  const pairs = isTalk ? pairTools(talkFrom(path, path.settled).concat(told)) : undefined;
  if (pairs?.strays.size === 0) return amidTalk([], path, checkTools(pairs, place, ask));
  return checkTools(pairTools(talkOf(path, told).concat(told)), place, ask);
}

/**
 * What was said on a path since its last compaction, without calls or outputs that deletion left unpaired. What is said
 * `next` may answer an older call.
 */
export function talkOf(path: Path, next: readonly Item[] = []): readonly Item[] {
  const turns = withShownFirst(turnsOf(path));
  if (!path.isAbridged) return itemsOf(turns);
  const short = turns.findLastIndex((turn) => turn.output.some((item) => item.type === "compaction"));
  const items = (turns[short]?.output ?? []).concat(itemsOf(turns.slice(short + 1)));
  return withoutHalves(items, path.tip, next);
}

/** The turn that begins a path, with the history that was shown with it. */
function withShownFirst(turns: readonly PathTurn[]): readonly PathTurn[] {
  const [shown, turn] = turns;
  if (turn === undefined || shown?.id !== `${turn.id}${shownSuffix}`) return turns;
  return [{ ...shown, input: [] }, { ...turn, input: rejoin(shown.input, turn.input, isSteering) }, ...turns.slice(2)];
}

/** Leaves out outputs without their call, and calls without their output; the newest turn's may still be answered. */
function withoutHalves(items: readonly Item[], newest: PathTurn | undefined, next: readonly Item[]): readonly Item[] {
  const { open, strays } = pairTools(items.concat(next));
  const isNewest = (item: Item) => newest?.output.includes(item) === true || newest?.input.includes(item) === true;
  return items.filter((item) => !strays.has(item) && (!open.has(item) || isNewest(item)));
}

/**
 * In a session the request's own system messages apply; if it has none, usually the newest of the thread. Settings stay
 * as the thread has changed them.
 */
function steering(place: Place, ask: Ask<Item>): readonly Item[] {
  const { path, input, showsAll } = place;
  const own = broughtSteering(ask.items).concat(input.filter(isSteering));
  if (showsAll === true) return own;
  return mergeSteering(inherits(place, ask) ? path.steering : path.steering.filter(changesSettings), own);
}

/** A caller may drop all that was said before a compaction: then its system messages are in there. */
function broughtSteering(items: readonly Item[]): readonly Item[] {
  const first = items.find((item) => sideOf(item) !== undefined || isSteering(item) || keepsSome(item));
  return first?.type === "compaction" ? (first.kept ?? []).filter(isSteering) : [];
}

/** Whether the thread's system messages may apply. */
function inherits({ showsAll }: Place, { settings }: Ask<Item>): boolean {
  return showsAll !== true && settings.instructions === undefined;
}

/** Every tool output needs its call. A call without output is an error, or left out if a hint found the session. */
function checkTools({ items, open, strays }: Pairs, { by }: Place, ask: Ask<Item>): readonly Item[] {
  const { itemsParam, needsOutputs = by !== "nothing" } = ask;
  checkOutputs(strays, itemsParam);
  if (open.size === 0) return items;
  if (by === "hint") return items.filter((item) => !open.has(item));
  const first = open.values().find((item) => item.type === "tool-call");
  if (first === undefined || !needsOutputs) return items;
  throw new GatewayError("tool_call_mismatch", `No tool output found for function call ${first.callId}.`, {
    param: itemsParam,
  });
}
