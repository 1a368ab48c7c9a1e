/** Recognises a caller that has not got the newest answer, and sends again what it was an answer to. */
import { withoutRepeat } from "./again.ts";
import { newestCalls } from "./calls.ts";
import { exchangeIds, type Item, isSteering } from "../item.ts";
import { noPath, type Path, turnsOf } from "./path.ts";
import { toRuns } from "./runs.ts";
import { answerOf } from "./shown.ts";
import { isSameSteering } from "./steering.ts";
import type { SessionStore } from "../store.ts";

interface Resending {
  readonly needsOutputs?: boolean;
  /** What would be new after the turn before. */
  readonly inputAfter?: (before: Path) => readonly Item[] | undefined;
}

/**
 * The path that a caller continues. One that only sends again what the newest turn was given has not got its answer, if
 * it cannot mean anything else: it is answered anew, in place of that turn. A question may be meant when it is asked
 * again; but an output is given once, and nothing but an output may follow a call that `needsOutputs`.
 */
export async function withoutLostAnswer(
  store: Pick<SessionStore, "readPath">,
  items: readonly Item[],
  path: Path,
  { needsOutputs = false, inputAfter = (before) => withoutRepeat(items, before) }: Resending = {},
): Promise<Path> {
  const newest = path.tip;
  // What was added to a conversation has no answer.
  if (newest === undefined || newest.status === "shown") return path;
  const sent = exchangeIds(items, "tools");
  if (sent.size === 0 && !needsOutputs) return path;
  const given = exchangeIds(newest.input, "tools");
  const calls = newestCalls(path);
  // Anything may follow what only its dialect knows, such as a request for approval.
  const isCall = (item: Item) => item.type === "tool-call" && calls.open.has(item.callId);
  const isMeant = sent.size === 0 ? !newest.output.some(isCall) : given.size === 0;
  if (isMeant || !given.isSubsetOf(sent) || calls.areAnswered(items)) return path;
  const previous = turnsOf(path).at(-2);
  const before = previous === undefined ? noPath : await store.readPath(previous.id);
  // It may just have been deleted.
  if (before.tip?.id !== previous?.id) return path;
  const again = inputAfter(before);
  if (again === undefined || !given.isSupersetOf(exchangeIds(again, "tools"))) return path;
  // In a conversation, system messages are items like any other: none may get lost.
  if (needsOutputs && !isSameSteering(again.filter(isSteering), newest.input.filter(isSteering))) return path;
  return canonAfter(before, again) === canonAfter(before, newest.input) ? before : path;
}

/** The calls before them order the outputs. */
function canonAfter(path: Path, items: readonly Item[]): string {
  return JSON.stringify(toRuns(answerOf(path.tip).concat(items)).map(({ side, canon }) => [side, canon]));
}
