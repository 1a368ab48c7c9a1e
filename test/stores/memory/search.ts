/** Finds a request's place in the memory store. */
import { noPath, type Path } from "../../../src/core/place/path.ts";
import { maxTwins, type Search } from "../../../src/core/store.ts";
import type { Step } from "../../../src/stores/paths.ts";
import type { CommitLookup } from "../../../src/stores/verdict.ts";
import { type Tables, toStep } from "./tables.ts";

export function createSearch(tables: Tables, lookup: CommitLookup): Search {
  const { turns, sessions, paths, checkOpen, listed } = tables;

  function get(turnId: string): Step | undefined {
    const turn = turns.get(turnId);
    return turn && toStep(turn);
  }

  async function readPath(turnId: string): Promise<Path> {
    checkOpen();
    return paths.find(turnId, get) ?? noPath;
  }

  return {
    async findSession(owner, hint) {
      checkOpen();
      return lookup.findSession(owner, hint);
    },
    async readSession(sessionId) {
      checkOpen();
      const found = sessions.get(sessionId);
      if (found === undefined) return undefined;
      const { hint: _hint, updatedAt: _updatedAt, ...session } = found;
      return session;
    },
    async findTurn(owner, turnId) {
      checkOpen();
      const turn = turns.get(turnId);
      return turn?.owner === owner ? turn : undefined;
    },
    readPath,
    recallPath: readPath,
    async findTwins(sessionId, by, marks) {
      checkOpen();
      for (const [index, mark] of marks.entries()) {
        const ids = [...listed(by, sessionId, mark)].toReversed().slice(0, maxTwins);
        const [newest, ...others] = ids.map((id) => ({ id, hasChildren: tables.hasChildren(id) }));
        if (newest !== undefined) return { index, twins: [newest, ...others] };
      }
      return undefined;
    },
    async countThreads(sessionId) {
      checkOpen();
      return Math.min(tables.endsOf(sessionId), 2);
    },
    async findKey(owner, key) {
      checkOpen();
      return tables.findKey(owner, key);
    },
  };
}
