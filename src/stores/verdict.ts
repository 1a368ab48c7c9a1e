/** The rules that every store shares: when the turns of a commit are kept, and with what place. */
import type { Commit, Session, StoredTurn } from "../core/store.ts";

/** Keep the turns and move no tip, move their session's tip to the last, create their session, or keep nothing. */
export type Verdict = "keep" | "keep-and-move" | "keep-and-create" | "refuse";

/** What a store looks up to judge a commit. */
export interface CommitLookup {
  /** The owner has this turn, and something can follow it. */
  canFollow(owner: string, turnId: string): boolean;
  /** The owner has this turn, and it is running. */
  isRunning(owner: string, turnId: string): boolean;
  readSession(sessionId: string): Session | undefined;
  /** The owner's session under this hint. */
  findSession(owner: string, hint: string): Session | undefined;
}

/**
 * Refuses a turn whose parent or session is gone, and a running turn that is gone itself: keeping it would bring back
 * what someone deleted. Of two turns, the first one's parent decides, because the second follows the first.
 */
export function judge({ turns: [turn, next], session: move, begun }: Commit, lookup: CommitLookup): Verdict {
  if (begun === true && !lookup.isRunning(turn.owner, (next ?? turn).id)) return "refuse";
  if (turn.parent !== undefined && !lookup.canFollow(turn.owner, turn.parent)) return "refuse";
  const sessionId = move?.id ?? turn.session;
  if (sessionId === undefined) return "keep";
  const session = move?.hint === undefined ? lookup.readSession(sessionId) : lookup.findSession(turn.owner, move.hint);
  if (session === undefined) {
    return move?.hint !== undefined && move.expectedTip === undefined ? "keep-and-create" : "refuse";
  }
  if (session.id !== sessionId || session.owner !== turn.owner) return "refuse";
  if (move === undefined) return "keep";
  if (session.tip === move.expectedTip) return "keep-and-move";
  const mayBranch = move.otherwise === "branch" || (move.otherwise === "branch-if-resends" && session.resends);
  return mayBranch ? "keep" : "refuse";
}

/** A turn that failed or was cancelled, with what is left of its place: it is kept even if that was deleted. */
export function toRemainingPlace(turn: StoredTurn, lookup: CommitLookup): StoredTurn {
  const { owner, parent } = turn;
  const isFollowing = parent !== undefined && lookup.canFollow(owner, parent);
  return { ...turn, session: remainingSession(turn, lookup), parent: isFollowing ? parent : undefined };
}

/** The turn's session, if it exists. */
export function remainingSession({ session }: StoredTurn, lookup: CommitLookup): string | undefined {
  return session === undefined ? undefined : lookup.readSession(session)?.id;
}
