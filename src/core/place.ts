/** Finds the node of the tree that a request continues. */
import { GatewayError } from "./errors.ts";
import type { History, SessionMove, SessionStore, StoredTurn } from "./ports.ts";
import type { Ask } from "./turn.ts";

export interface Place {
  readonly history: History;
  /** The turns before this one, from the root. */
  readonly path: readonly StoredTurn[];
  readonly move: SessionMove | undefined;
  /** How the path was found decides how it is shown to the model. */
  readonly by: "response" | "hint" | "nothing";
}

/** `hint` is what the request says about its session, if anything. */
export async function findPlace(
  store: SessionStore,
  ask: Ask,
  owner: string,
  hint: string | undefined,
  newSessionId: () => string,
): Promise<Place> {
  if (ask.previousId !== undefined) return continueResponse(store, ask.previousId, owner);
  if (hint !== undefined) return continueSession(store, ask, owner, hint, newSessionId);
  return { history: ask.keep === "yes" ? "new" : "stateless", path: [], move: undefined, by: "nothing" };
}

async function continueResponse(store: SessionStore, previousId: string, owner: string): Promise<Place> {
  const previous = await store.findTurn(owner, previousId);
  if (previous === undefined) {
    throw new GatewayError("previous_response_not_found", `Previous response with id '${previousId}' not found.`, {
      param: "previous_response_id",
    });
  }
  const path = await store.readPath(previous.id);
  const move =
    previous.session === undefined
      ? undefined
      : ({ id: previous.session, expectedTip: previous.id, otherwise: "branch" } as const);
  return { history: "continued", path, move, by: "response" };
}

async function continueSession(
  store: SessionStore,
  ask: Ask,
  owner: string,
  hint: string,
  newSessionId: () => string,
): Promise<Place> {
  const session = await store.findSession(owner, hint);
  const move: SessionMove = {
    id: session?.id ?? newSessionId(),
    hint,
    expectedTip: session?.tip,
    otherwise: "refuse",
  };
  if (session?.tip === undefined) return { history: "new", path: [], move, by: "hint" };
  if (showsHistory(ask)) return { history: "foreign", path: [], move, by: "hint" };
  return { history: "continued", path: await store.readPath(session.tip), move, by: "hint" };
}

/** A list with something of the model's in it is the caller's own account of the conversation. */
function showsHistory(ask: Ask): boolean {
  return ask.items.some(
    (item) =>
      item.type === "tool-call" || item.type === "reasoning" || (item.type === "message" && item.role === "assistant"),
  );
}
