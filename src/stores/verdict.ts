/** The rules that every store shares: when a commit's turns are kept, and what can be followed. */
import type { Commit, Session, StoredTurn } from "../core/store.ts";

/** Keep the turns and leave every tip, move their session's tip to the last, make their session, or keep nothing. */
export type Verdict = "keep" | "keep-and-move" | "keep-and-create" | "refuse";

/** What a store looks up to judge a commit. */
export interface Shelf {
  /** The owner has this turn, and something can follow it. */
  canFollow(owner: string, turnId: string): boolean;
  /** The owner has this turn, and it is running. */
  isRunning(owner: string, turnId: string): boolean;
  readSession(sessionId: string): Session | undefined;
  /** The owner's session under this hint. */
  findSession(owner: string, hint: string): Session | undefined;
}

/**
 * A turn whose parent or session is gone is refused, and so is one that was running and is gone: to keep it would bring
 * back what someone deleted. Of two turns the first one's parent decides, as the second follows the first.
 */
export function judge({ turns: [turn, next], session: move, begun }: Commit, shelf: Shelf): Verdict {
  if (begun === true && !shelf.isRunning(turn.owner, (next ?? turn).id)) return "refuse";
  if (turn.parent !== undefined && !shelf.canFollow(turn.owner, turn.parent)) return "refuse";
  const sessionId = move?.id ?? turn.session;
  if (sessionId === undefined) return "keep";
  const session = move?.hint === undefined ? shelf.readSession(sessionId) : shelf.findSession(turn.owner, move.hint);
  if (session === undefined) {
    return move?.hint !== undefined && move.expectedTip === undefined ? "keep-and-create" : "refuse";
  }
  if (session.id !== sessionId || session.owner !== turn.owner) return "refuse";
  if (move === undefined) return "keep";
  if (session.tip === move.expectedTip) return "keep-and-move";
  const mayBranch = move.otherwise === "branch" || (move.otherwise === "branch-if-resends" && session.resends);
  return mayBranch ? "keep" : "refuse";
}

/** The turn where it still can be: it came to nothing, and is kept even if its place was deleted in the meantime, but outside of it. */
export function toPlaceLeft(turn: StoredTurn, shelf: Shelf): StoredTurn {
  const { owner, parent } = turn;
  const isFollowing = parent !== undefined && shelf.canFollow(owner, parent);
  return { ...turn, session: sessionLeft(turn, shelf), parent: isFollowing ? parent : undefined };
}

/** The turn's session, if it is there. */
export function sessionLeft({ session }: StoredTurn, shelf: Shelf): string | undefined {
  return session === undefined ? undefined : shelf.readSession(session)?.id;
}

/** Nothing follows a turn that is not over, or came to nothing: it is no part of any thread. */
export function isFollowable(status: StoredTurn["status"]): boolean {
  return status === "completed" || status === "incomplete" || status === "shown";
}
