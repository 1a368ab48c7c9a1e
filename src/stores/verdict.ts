/** The one rule by which a store keeps a turn or refuses it. */
import type { Commit } from "../core/ports.ts";

/** Keep the turn and leave every tip, move its session's tip to it, make its session with it, or keep nothing. */
export type Verdict = "keep" | "keep-and-move" | "keep-and-create" | "refuse";

/** What a store looks up to judge a commit. */
export interface Shelf {
  hasTurn(owner: string, turnId: string): boolean;
  readSession(sessionId: string): { readonly owner: string; readonly tip: string | undefined } | undefined;
  /** Whether the owner has a session under this hint. */
  isTaken(owner: string, hint: string): boolean;
}

/** A turn whose parent or session is gone is refused: to keep it would bring back what someone deleted. */
export function judge(commit: Commit, shelf: Shelf): Verdict {
  const { turn, session: move } = commit;
  if (turn.parent !== undefined && !shelf.hasTurn(turn.owner, turn.parent)) return "refuse";
  const sessionId = move?.id ?? turn.session;
  if (sessionId === undefined) return "keep";
  const session = shelf.readSession(sessionId);
  if (session === undefined) {
    const isNew = move?.hint !== undefined && move.expectedTip === undefined;
    return isNew && !shelf.isTaken(turn.owner, move.hint) ? "keep-and-create" : "refuse";
  }
  if (session.owner !== turn.owner) return "refuse";
  if (move === undefined) return "keep";
  if (session.tip === move.expectedTip) return "keep-and-move";
  return move.otherwise === "branch" ? "keep" : "refuse";
}
