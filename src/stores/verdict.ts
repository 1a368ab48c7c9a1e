/** The one rule by which a store keeps a commit's turns or refuses them. */
import type { Commit, Session } from "../core/ports.ts";

/** Keep the turns and leave every tip, move their session's tip to the last, make their session, or keep nothing. */
export type Verdict = "keep" | "keep-and-move" | "keep-and-create" | "refuse";

/** What a store looks up to judge a commit. */
export interface Shelf {
  hasTurn(owner: string, turnId: string): boolean;
  readSession(sessionId: string): Session | undefined;
  /** The owner's session under this hint. */
  findSession(owner: string, hint: string): Session | undefined;
}

/**
 * A turn whose parent or session is gone is refused: to keep it would bring back what someone deleted. Of two turns the
 * first one's parent decides, as the second follows the first.
 */
export function judge({ turns: [turn], session: move }: Commit, shelf: Shelf): Verdict {
  if (turn.parent !== undefined && !shelf.hasTurn(turn.owner, turn.parent)) return "refuse";
  const sessionId = move?.id ?? turn.session;
  if (sessionId === undefined) return "keep";
  const session = move?.hint === undefined ? shelf.readSession(sessionId) : shelf.findSession(turn.owner, move.hint);
  if (session === undefined) {
    return move?.hint !== undefined && move.expectedTip === undefined ? "keep-and-create" : "refuse";
  }
  if (session.id !== sessionId || session.owner !== turn.owner) return "refuse";
  if (move === undefined) return "keep";
  if (session.tip === move.expectedTip) return "keep-and-move";
  return move.otherwise === "branch" ? "keep" : "refuse";
}
