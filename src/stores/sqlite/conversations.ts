/** The SQLite store's sessions as conversations that callers name. */
import type { Conversations } from "../../core/store.ts";
import { changeInSteps } from "./deletion.ts";
import type { Access } from "./access.ts";
import { hourOf } from "./writer.ts";
import type { Removal } from "./removal.ts";
import { addRow, toRow } from "../row.ts";

export function createConversations(access: Access, removal: Removal): Conversations {
  const { prepare, group } = access;
  const addSession = prepare(`
    INSERT INTO sessions (id, owner, tip, created, updated, active, metadata) VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const addTurn = prepare(addRow);
  const updateMetadata = prepare("UPDATE sessions SET metadata = ? WHERE id = ? AND owner = ? AND deleted = 0");
  const replaceItems = prepare("UPDATE turns SET input = ?, output = ?, gap = 1 WHERE id = ?");

  return {
    async createSession({ id, owner, createdAt, metadata }, shown) {
      const time = createdAt.getTime();
      const row = shown && toRow(shown);
      await group.add(() => {
        addSession.run(id, owner, shown?.id ?? null, time, time, hourOf(time), JSON.stringify(metadata));
        if (row !== undefined) addTurn.run(...row);
      });
    },
    async updateMetadata(owner, sessionId, metadata) {
      const json = JSON.stringify(metadata);
      return group.add(() => updateMetadata.run(json, sessionId, owner).changes === 1);
    },
    async replaceItems(turnId, input, output) {
      const [inputJson, outputJson] = [JSON.stringify(input), JSON.stringify(output)];
      return changeInSteps(access, removal, () => {
        const isReplaced = replaceItems.run(inputJson, outputJson, turnId).changes === 1;
        return { changed: isReplaced ? [turnId] : undefined, done: true };
      });
    },
  };
}
