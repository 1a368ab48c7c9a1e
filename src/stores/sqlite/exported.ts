/** Notes what an export has written so far, in a temporary file, because it may exceed memory. */
import type { TurnRow } from "../row.ts";
import { createTemporary } from "../temporary.ts";

export interface Exported {
  addSession(sessionId: string): void;
  /**
   * False if its session was not exported, if it is outside of sessions and not wanted, if it follows a turn that was
   * not exported, or if it was exported already: it came, or came again, after the export began, and is left out.
   */
  addTurn(turn: TurnRow, outside: "all" | ReadonlySet<string>): boolean;
  close(): void;
}

export function createExported(inMemory = false): Exported {
  const what = "The progress of the export cannot be recorded";
  const { database, use } = createTemporary(what, "export it again.", inMemory);
  // Nothing is rolled back.
  database.exec(`
    PRAGMA journal_mode = OFF;
    CREATE TABLE sessions (id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE turns (id TEXT PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
    BEGIN`);
  const addSession = database.prepare("INSERT OR IGNORE INTO sessions VALUES (?)");
  const addTurn = database.prepare("INSERT OR IGNORE INTO turns VALUES (?)");
  const findSession = database.prepare("SELECT 1 FROM sessions WHERE id = ?");
  const findTurn = database.prepare("SELECT 1 FROM turns WHERE id = ?");
  return {
    addSession: (sessionId) => void use(() => addSession.run(sessionId)),
    addTurn([id, , session, parent], outside) {
      return use(() => {
        const isWantedOutside = outside === "all" || outside.has(id);
        const isWanted = session === null ? isWantedOutside : findSession.get(session) !== undefined;
        if (!isWanted || (parent !== null && findTurn.get(parent) === undefined)) return false;
        return addTurn.run(id).changes === 1;
      });
    },
    close: () => database.close(),
  };
}
