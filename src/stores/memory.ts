/** Turns in the memory of this process: quick, and gone with it. */
import { GatewayError } from "../core/errors.ts";
import type { Session, SessionStore, StoredTurn } from "../core/ports.ts";
import { type Shelf, judge } from "./verdict.ts";

/** A store that forgets when the process ends. */
export function createMemoryStore(): SessionStore {
  const turns = new Map<string, StoredTurn>();
  const sessions = new Map<string, Session>();
  const sessionIds = new Map<string, string>();
  let closed = false;

  const shelf: Shelf = {
    hasTurn: (owner, turnId) => turns.get(turnId)?.owner === owner,
    readSession: (sessionId) => sessions.get(sessionId),
    findSession: (owner, hint) => sessions.get(sessionIds.get(nameOf(owner, hint)) ?? ""),
  };

  function checkOpen(): void {
    if (closed) throw new GatewayError("store_unavailable", "The session store is closed.", { retryAfterSeconds: 1 });
  }

  return {
    async findSession(owner, hint): Promise<Session | undefined> {
      checkOpen();
      return shelf.findSession(owner, hint);
    },
    async readSession(sessionId) {
      checkOpen();
      return shelf.readSession(sessionId);
    },
    async findTurn(owner, turnId) {
      checkOpen();
      const turn = turns.get(turnId);
      return turn?.owner === owner ? turn : undefined;
    },
    async readPath(turnId) {
      checkOpen();
      const path: StoredTurn[] = [];
      let turn = turns.get(turnId);
      while (turn !== undefined) {
        path.push(turn);
        turn = turn.parent === undefined ? undefined : turns.get(turn.parent);
      }
      return path.toReversed();
    },
    async commit(commit) {
      checkOpen();
      const { turn, session: move } = commit;
      if (turns.has(turn.id)) throw new Error(`The turn ${turn.id} is kept already.`);
      const verdict = judge(commit, shelf);
      if (verdict === "refuse") return false;
      turns.set(turn.id, turn);
      if (move === undefined || verdict === "keep") return true;
      sessions.set(move.id, { id: move.id, owner: turn.owner, tip: turn.id });
      if (verdict === "keep-and-create" && move.hint !== undefined) {
        sessionIds.set(nameOf(turn.owner, move.hint), move.id);
      }
      return true;
    },
    async check() {
      checkOpen();
    },
    async close() {
      closed = true;
    },
  };
}

function nameOf(owner: string, hint: string): string {
  return JSON.stringify([owner, hint]);
}
