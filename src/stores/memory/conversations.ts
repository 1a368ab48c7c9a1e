/** The memory store's sessions as conversations that callers name. */
import type { Conversations } from "../../core/store.ts";
import type { Shelves } from "./shelves.ts";

export function createConversations(shelves: Shelves): Conversations {
  const { turns, sessions, checkOpen } = shelves;
  return {
    async createSession({ id, owner, createdAt, metadata }, shown) {
      checkOpen();
      if (sessions.has(id)) throw new Error(`The session ${id} is already stored.`);
      if (shown !== undefined && turns.has(shown.id)) throw new Error(`The turn ${shown.id} is already stored.`);
      const tip = shown?.id;
      const unused = { hint: undefined, resends: false, updatedAt: createdAt };
      shelves.putSession({ id, owner, tip, metadata, createdAt, ...unused });
      if (shown !== undefined) shelves.addTurn(shown);
    },
    async updateMetadata(owner, sessionId, metadata) {
      checkOpen();
      const session = sessions.get(sessionId);
      if (session?.owner !== owner) return false;
      shelves.putSession({ ...session, metadata });
      return true;
    },
    async replaceItems(turnId, input, output) {
      checkOpen();
      const turn = turns.get(turnId);
      if (turn === undefined) return false;
      shelves.changeTurn({ ...turn, input, output, gap: true });
      return true;
    },
  };
}
