/** The memory store's sessions as conversations that callers name. */
import type { Conversations } from "../../../src/core/store.ts";
import type { Tables } from "./tables.ts";

export function createConversations(tables: Tables): Conversations {
  const { turns, sessions, checkOpen } = tables;
  return {
    async createSession({ id, owner, createdAt, metadata }, shown) {
      checkOpen();
      if (sessions.has(id)) throw new Error(`The session ${id} is already stored.`);
      if (shown !== undefined && turns.has(shown.id)) throw new Error(`The turn ${shown.id} is already stored.`);
      const tip = shown?.id;
      const unused = { hint: undefined, resends: false, updatedAt: createdAt };
      tables.putSession({ id, owner, tip, metadata, createdAt, ...unused });
      if (shown !== undefined) tables.addTurn(shown);
    },
    async updateMetadata(owner, sessionId, metadata) {
      checkOpen();
      const session = sessions.get(sessionId);
      if (session?.owner !== owner) return false;
      tables.putSession({ ...session, metadata });
      return true;
    },
    async replaceItems(turnId, input, output) {
      checkOpen();
      const turn = turns.get(turnId);
      if (turn === undefined) return false;
      tables.changeTurn({ ...turn, input, output, gap: true });
      return true;
    },
  };
}
