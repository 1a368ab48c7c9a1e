/** The operator's view of the memory store. */
import { randomBytes } from "node:crypto";
import type { Archive, ArchiveRecord, StoredTurn, ImportResult } from "../../../src/core/store.ts";
import { beginningOf } from "./beginning.ts";
import { brokenArchive, checkPlace, mixedOwners, noSession, otherKey } from "../../../src/stores/refusals.ts";
import { createSessionless } from "./sessionless.ts";
import type { StoredSession, Tables } from "./tables.ts";

export function createArchive(tables: Tables): Archive {
  const { turns, sessions, checkOpen, nameOf } = tables;
  const { listSessionless, around } = createSessionless(tables);

  /** A session or turn that is deleted before the export reaches it is left out. */
  async function* exportRecords(wanted?: string): AsyncGenerator<ArchiveRecord> {
    checkOpen();
    const outside = wanted === undefined ? [] : around(wanted);
    if (wanted !== undefined && outside.length === 0 && !sessions.has(wanted)) throw noSession(wanted);
    const told = [...sessions.keys()].filter((id) => wanted === undefined || id === wanted);
    yield { type: "store", hintKey: Buffer.from(tables.hintKey()).toString("base64url"), sealKeys: listSealKeys() };
    for (const id of told) {
      checkOpen();
      const session = sessions.get(id);
      if (session !== undefined) yield { type: "session", ...session };
    }
    const known = new Set<string | undefined>([undefined, ...told]);
    const inside = wanted === undefined ? turns.keys() : tables.listed("session", wanted);
    const turnIds = [...inside, ...outside];
    for (const id of turnIds) {
      checkOpen();
      const turn = turns.get(id);
      if (turn !== undefined && known.has(turn.session)) yield { type: "turn", turn };
    }
  }

  function listSealKeys(): readonly string[] {
    return [...tables.sealKeys.slice(0, 1), ...tables.sealKeys.slice(1).toSorted()];
  }

  function firstTurnOf(sessionId: string): StoredTurn | undefined {
    const [first] = tables.listed("session", sessionId);
    return first === undefined ? undefined : turns.get(first);
  }

  function importAll(records: readonly ArchiveRecord[]): ImportResult {
    const isBound = [...sessions.values()].some(({ hint }) => hint !== undefined);
    const newSessions = new Map<string, StoredSession>();
    const newTurns = new Map<string, StoredTurn>();
    const findSession = (id: string) => sessions.get(id) ?? newSessions.get(id);
    const findTurn = (id: string) => turns.get(id) ?? newTurns.get(id);
    const hints = new Map<string, string>();
    const tips: (readonly [sessionId: string, tip: string])[] = [];
    let key = tables.hintKey();
    let newSealKeys: readonly string[] = [];
    let isSameKey = false;
    for (const [index, record] of records.entries()) {
      if ((index === 0) !== (record.type === "store")) {
        throw brokenArchive("its first record, and only that one, must hold its key");
      }
      switch (record.type) {
        case "store": {
          const theirs = Buffer.from(record.hintKey, "base64url");
          isSameKey = theirs.equals(key) || !isBound;
          if (isSameKey) key = theirs;
          newSealKeys = record.sealKeys ?? [];
          break;
        }
        case "session": {
          const { type: _, ...session } = record;
          const known = sessions.get(session.id);
          if (session.tip !== undefined) tips.push([session.id, session.tip]);
          const isSame = known !== undefined && known.owner === session.owner;
          if (isSame && known.hint === undefined && session.hint !== undefined && isSameKey) {
            hints.set(session.id, session.hint);
          }
          if (findSession(session.id) !== undefined) break;
          if (session.hint !== undefined && !isSameKey) throw otherKey();
          if (session.hint !== undefined) hints.set(session.id, session.hint);
          newSessions.set(session.id, session);
          break;
        }
        case "turn":
          if (findTurn(record.turn.id) === undefined) {
            checkPlace(
              record.turn,
              (id) => findSession(id)?.owner,
              (id) => findTurn(id)?.owner,
            );
            newTurns.set(record.turn.id, record.turn);
          }
          break;
      }
    }
    for (const { id, owner, tip } of newSessions.values()) {
      const turn = tip === undefined ? undefined : findTurn(tip);
      if (turn !== undefined && turn.owner !== owner) {
        throw mixedOwners(`the tip of the session ${id} is the turn ${turn.id}`);
      }
    }
    tables.adoptKey(key);
    for (const each of newSealKeys) if (!tables.sealKeys.includes(each)) tables.sealKeys.push(each);
    for (const turn of newTurns.values()) tables.addTurn(turn);
    for (const session of newSessions.values()) tables.putSession({ ...session, hint: undefined, tip: undefined });
    for (const [sessionId, tip] of tips) giveTip(sessionId, tip);
    const taken = [...hints].filter(([sessionId, hint]) => !giveHint(sessionId, hint));
    return { sessions: newSessions.size, turns: newTurns.size, hintsTaken: taken.length };
  }

  /** A turn deleted during the export is no tip, and a session that has a tip keeps it. */
  function giveTip(sessionId: string, tip: string): void {
    const session = sessions.get(sessionId);
    if (session === undefined || session.tip !== undefined || turns.get(tip)?.owner !== session.owner) return;
    tables.putSession({ ...session, tip });
  }

  /** False if another session has the hint by now, which keeps it. */
  function giveHint(sessionId: string, hint: string): boolean {
    const session = sessions.get(sessionId);
    if (session === undefined || tables.sessionUnder(session.owner, hint) !== undefined) return false;
    tables.putSession({ ...session, hint });
    return true;
  }

  return {
    listSessionless,
    async listSessions({ owner, hint, after, limit }) {
      checkOpen();
      if (after !== undefined && !sessions.has(after)) throw noSession(after);
      const newestFirst = [...sessions.values()]
        .toReversed()
        .toSorted((one, other) => +other.updatedAt - +one.updatedAt)
        .filter((session) => session.id === after || owner === undefined || session.owner === owner)
        .filter(
          (session) => session.id === after || hint === undefined || session.hint === nameOf(session.owner, hint),
        );
      const start = newestFirst.findIndex(({ id }) => id === after) + 1;
      return newestFirst.slice(start, start + limit).map((session) => ({
        id: session.id,
        owner: session.owner,
        createdAt: session.createdAt,
        updatedAt: session.updatedAt,
        turns: tables.listed("session", session.id).size,
        beginning: beginningOf(firstTurnOf(session.id)?.input),
      }));
    },
    exportRecords,
    async importRecords(records) {
      checkOpen();
      const gathered: ArchiveRecord[] = [];
      for await (const record of records) gathered.push(record);
      checkOpen();
      return importAll(gathered);
    },
    async sealKeys() {
      checkOpen();
      if (tables.sealKeys.length === 0) tables.sealKeys.push(randomBytes(32).toString("base64url"));
      const [own = "", ...foreign] = listSealKeys();
      return [own, ...foreign];
    },
  };
}
