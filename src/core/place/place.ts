/**
 * Finds the node of the tree that a request continues, and takes its thread's turn.
 *
 * What is new becomes the turn's input. What else its caller shows is on the path already, or else is its base, which
 * is stored before it. A session is resent if its callers are known to show their history. `otherwise` is what happens
 * if the session has moved on by the time the turn is stored.
 *
 * | request                               | its session | history   | path        | base        | otherwise         |
 * | ------------------------------------- | ----------- | --------- | ----------- | ----------- | ----------------- |
 * | names a response                      | that one's  | continued | that turn   | none        | branch            |
 * | names a response                      | none        | continued | that turn   | none        | -                 |
 * | names a conversation                  | that one    | continued | newest turn | none        | refuse            |
 * | the same, outputs given again         | that one    | continued | that turn   | none        | refuse            |
 * | the same, what led to calls again     | that one    | continued | that turn   | none        | refuse            |
 * | hint, only new items                  | new         | new       | none        | none        | branch            |
 * | hint, a history                       | new         | new       | none        | the history | branch            |
 * | hint, only new items                  | not resent  | continued | newest turn | none        | branch-if-resends |
 * | hint, only new items                  | resent      | new       | none        | none        | branch            |
 * | hint, a tool's output first           | any         | continued | newest turn | none        | branch-if-resends |
 * | hint, outputs given again             | any         | continued | that turn   | none        | branch-if-resends |
 * | hint, the first question for a title  | not resent  | new       | none        | none        | branch            |
 * | hint, the steps of the newest turn    | not resent  | matched   | newest turn | none        | branch            |
 * | hint, all up to the end of a thread   | any         | matched   | that turn   | none        | branch            |
 * | hint, the last exchanges of a thread  | any         | matched   | that turn   | none        | branch            |
 * | hint, all up to an older turn         | any         | forked    | that turn   | none        | branch            |
 * | hint, another end after an older turn | any         | forked    | that turn   | that end    | branch            |
 * | hint, a history unknown there         | any         | foreign   | none        | the history | branch            |
 * | names nothing, but is to be stored    | none        | new       | none        | none        | -                 |
 * | names nothing                         | none        | stateless | none        | none        | -                 |
 */
import { withoutRepeat } from "./again.ts";
import { talkOf } from "./context.ts";
import { GatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import { withoutLostAnswer } from "./lost-answer.ts";
import type { Match, MatchParts } from "./match.ts";
import { noPath, type Path, readThread } from "./path.ts";
import { enterLine, leaveAll, type Queue } from "./queue.ts";
import { continueSession, type UnstoredSession } from "./session.ts";
import type { Session, SessionMove, SessionStore, StoredTurn } from "../store.ts";
import type { Ask } from "../turn.ts";

export interface Place extends Match {
  /** What the request does not show was not said: only its own system messages apply. */
  readonly showsAll?: boolean | undefined;
  /** The existing session. */
  readonly session: Session | undefined;
  /** What storing this turn does to its session. */
  readonly move: SessionMove | undefined;
  /** How the path was found decides how it is shown to the model. */
  readonly by: "response" | "conversation" | "hint" | "nothing";
}

/** Whether the request itself shows all that was said on its path. */
export function showsPath({ history, isTail }: Pick<Place, "history" | "isTail">): boolean {
  return history !== "continued" && isTail !== true;
}

export interface Requester {
  readonly owner: string;
  /** What the request says about its session. */
  readonly hint: string | undefined;
  /** The hint names one conversation, rather than a speaker who may have several at once. */
  readonly hintsAtTalk?: boolean | undefined;
  /** It cannot show what was said before, so it continues where the session is, whatever its other callers do. */
  readonly neverShows?: boolean | undefined;
  /** It resends its history, whatever its session is known for; absent: as the gateway is set. */
  readonly alwaysResends?: boolean | undefined;
  readonly signal: AbortSignal;
  /** Called as soon as it is in line, so that later requests queue behind it; without a line, when it has its place. */
  readonly stands?: (() => void) | undefined;
  /** Turns only this caller can continue, since they are stored nowhere else. */
  readonly memory?: Memory | undefined;
}

/** A caller's own memory of turns that are not stored, e.g. as long as its connection lasts. */
export interface Memory {
  /** The turns from the root to this one. */
  find(turnId: string): Path | undefined;
  keep(path: Path): void;
}

/** A stored turn cannot follow one that is not, so its input begins with what was said. */
export function withUnstored(ask: Ask<Item>, memory: Memory | undefined): Ask<Item> {
  const before = ask.previousId === undefined || ask.keep === "no" ? undefined : memory?.find(ask.previousId);
  if (before === undefined) return ask;
  const input = withoutRepeat(ask.items, before);
  return { ...ask, previousId: undefined, items: talkOf(before, input).concat(input) };
}

export interface PlaceParts extends MatchParts {
  readonly queue: Queue;
  readonly newSessionId: () => string;
  /** Sessions just being begun, by owner and hint. */
  readonly unstored: Map<string, UnstoredSession>;
  /** Requesters that do not say count as resending their history, from the start. */
  readonly alwaysResends: () => boolean;
}

/** A request that looks for its place. */
export interface PlaceSearch {
  readonly parts: PlaceParts;
  readonly ask: Ask<Item>;
  readonly requester: Requester;
  /** What must be called when the place is left, or none was found. */
  readonly whenLeft: (() => void)[];
}

export function findPlace(
  parts: PlaceParts,
  ask: Ask<Item>,
  requester: Requester,
  whenLeft: PlaceSearch["whenLeft"],
): Promise<Place> {
  const search = { parts, ask, requester, whenLeft };
  if (ask.previousId !== undefined) return continueResponse(search, ask.previousId);
  if (ask.conversationId !== undefined) return continueConversation(search, ask.conversationId);
  if (requester.hint !== undefined) return continueSession(search, requester.hint);
  const history = ask.keep === "yes" ? "new" : "stateless";
  return Promise.resolve({ history, path: noPath, input: ask.items, by: "nothing", ...outside });
}

/** What is in no session. */
const outside = { base: [], session: undefined, move: undefined } as const;

/** What a request will be placed by, known before its place is. */
export function placedBy(ask: Ask<Item>, hint: string | undefined): Place["by"] {
  if (ask.previousId !== undefined) return "response";
  if (ask.conversationId !== undefined) return "conversation";
  return hint === undefined ? "nothing" : "hint";
}

async function continueResponse(search: PlaceSearch, previousId: string): Promise<Place> {
  const { parts, ask, requester, whenLeft } = search;
  const { store } = parts;
  const { owner, memory } = requester;
  const remembered = memory?.find(previousId);
  if (remembered !== undefined) {
    const input = withoutRepeat(ask.items, remembered);
    return { history: "continued", path: remembered, input, by: "response", ...outside };
  }
  const previous = await findPrevious(store, owner, previousId);
  let session = previous.session === undefined ? undefined : await store.readSession(previous.session);
  // A turn that continues a session's newest takes part in its thread; any other is a branch of its own.
  if (session?.tip === previous.id) {
    await enterLine(search, session.id);
    session = await store.readSession(session.id);
    if (session?.tip !== previous.id) leaveAll(whenLeft);
  }
  const move = session && ({ id: session.id, expectedTip: previous.id, otherwise: "branch", resends: false } as const);
  const path = await store.readPath(previous.id);
  // It may have been deleted while the request waited.
  if (path.tip?.id !== previous.id) throw noPrevious(previousId, "not found");
  const input = withoutRepeat(ask.items, path);
  return { history: "continued", path, base: [], input, session, move, by: "response" };
}

/** Throws if what a request continues does not exist; returns its session. */
export async function findContinued(
  store: SessionStore,
  owner: string,
  { previousId, conversationId }: Pick<Ask, "previousId" | "conversationId">,
): Promise<string | undefined> {
  if (previousId !== undefined) return (await findPrevious(store, owner, previousId)).session;
  return conversationId === undefined ? undefined : (await findConversation(store, owner, conversationId)).id;
}

/** The turn that a request names as the one before it. */
async function findPrevious(store: SessionStore, owner: string, previousId: string): Promise<StoredTurn> {
  const previous = await store.findTurn(owner, previousId);
  if (previous?.status === "completed" || previous?.status === "incomplete") return previous;
  if (previous === undefined) throw noPrevious(previousId, "not found");
  throw noPrevious(previousId, previous.status === "running" ? "is still running" : "has no answer to continue from");
}

export function noPrevious(previousId: string, why: string): GatewayError {
  return new GatewayError("previous_response_not_found", `Previous response with id '${previousId}' ${why}.`, {
    param: "previous_response_id",
  });
}

async function continueConversation(search: PlaceSearch, conversationId: string): Promise<Place> {
  const { store } = search.parts;
  const { owner } = search.requester;
  const found = await findConversation(store, owner, conversationId);
  const isFree = await enterLine(search, conversationId);
  let session = isFree ? found : await findConversation(store, owner, conversationId);
  let thread = await readThread(store, session);
  if (thread.tip?.id !== session.tip) {
    // It, or its newest turn, was deleted just now.
    session = await findConversation(store, owner, conversationId);
    thread = await readThread(store, session);
  }
  const { items, needsOutputs = true } = search.ask;
  const path = await withoutLostAnswer(store, items, thread, { needsOutputs });
  const move = { id: session.id, expectedTip: session.tip, otherwise: "refuse", resends: false } as const;
  const input = withoutRepeat(items, path);
  return { history: "continued", path, base: [], input, session, move, by: "conversation" };
}

/** The owner's session of this id. */
async function findConversation(store: SessionStore, owner: string, conversationId: string): Promise<Session> {
  const session = await store.readSession(conversationId);
  if (session?.owner === owner) return session;
  throw noConversation(conversationId, "not found");
}

export function noConversation(conversationId: string, why: string): GatewayError {
  return new GatewayError("not_found", `Conversation with id '${conversationId}' ${why}.`, { param: "conversation" });
}
