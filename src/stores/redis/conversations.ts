/** The Redis store's sessions as conversations that callers name. */
import type { Conversations } from "../../core/store.ts";
import type { Access } from "./access.ts";
import { rejectDuplicate } from "./writer.ts";
import * as scripts from "./scripts.ts";
import { toParts } from "./turn.ts";

export function createConversations(access: Access): Conversations {
  return {
    async createSession({ id, owner, createdAt, metadata }, shown) {
      const args = [id, owner, String(createdAt.getTime()), JSON.stringify(metadata)];
      const parts = shown === undefined ? [] : toParts(shown);
      await access
        .write(scripts.createSession, [...args, ...parts])
        .catch((thrown) => rejectDuplicate(thrown, [{ id }, ...(shown === undefined ? [] : [shown])]));
    },
    async updateMetadata(owner, sessionId, metadata) {
      return (await access.write(scripts.updateMetadata, [sessionId, owner, JSON.stringify(metadata)])) === 1;
    },
    async replaceItems(turnId, input, output) {
      const args = [turnId, JSON.stringify(input), JSON.stringify(output)];
      const changes = await access.write(scripts.replaceItems, args);
      if (changes === null) return false;
      access.noteChange(changes, [turnId]);
      return true;
    },
  };
}
