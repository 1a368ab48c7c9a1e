/** Finds a request's place in the memory store. */
import { noPath, type Path } from "../../../src/core/place/path.ts";
import { maxExaminedTwins, maxTwins, type Search } from "../../../src/core/store.ts";
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
    async findByDigest(sessionId, digests) {
      checkOpen();
      for (const [index, digest] of digests.entries()) {
        const twins = [...listed("digest", sessionId, digest)].slice(-maxExaminedTwins);
        const id = twins.findLast((twin) => !tables.hasChildren(twin)) ?? twins.at(-1);
        if (id !== undefined) return { id, index, hasChildren: tables.hasChildren(id) };
      }
      return undefined;
    },
    async findTwins(sessionId, by, mark) {
      checkOpen();
      const twins = [...listed(by, sessionId, mark)].toReversed().slice(0, maxTwins);
      return twins.map((id) => ({ id, hasChildren: tables.hasChildren(id) }));
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
