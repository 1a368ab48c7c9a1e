/** The Redis store's sessions as conversations that callers name. */
import type { Conversations } from "../../core/store.ts";
import type { Ground } from "./ground.ts";
import { rejectKept } from "./keeping.ts";
import { scripts } from "./scripts.ts";
import { toParts } from "./turn.ts";

export function createConversations(ground: Ground): Conversations {
  return {
    async createSession({ id, owner, createdAt, metadata }, shown) {
      const args = [id, owner, String(createdAt.getTime()), JSON.stringify(metadata)];
      const parts = shown === undefined ? [] : toParts(shown);
      await ground
        .write(scripts.createSession, [...args, ...parts])
        .catch((thrown) => rejectKept(thrown, [{ id }, ...(shown === undefined ? [] : [shown])]));
    },
    async updateMetadata(owner, sessionId, metadata) {
      return (await ground.write(scripts.updateMetadata, [sessionId, owner, JSON.stringify(metadata)])) === 1;
    },
    async replaceItems(turnId, input, output) {
      const args = [turnId, JSON.stringify(input), JSON.stringify(output)];
      const changes = await ground.write(scripts.replaceItems, args);
      if (changes === null) return false;
      ground.noteChange(changes, [turnId]);
      return true;
    },
  };
}
