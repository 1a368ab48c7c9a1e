/** Imports an archive into the SQLite store: staged in a temporary file first, then all in one transaction. */
import type { Archive, ArchiveRecord, ImportResult } from "../../core/store.ts";
import { checkPlace, mixedOwners, otherKey } from "../refusals.ts";
import type { Access } from "./access.ts";
import { hourOf } from "./writer.ts";
import type { Removal } from "./removal.ts";
import { type TurnRow, addRow, toRow } from "../row.ts";
import { type StagedRow, createStaging } from "../staging.ts";

export function createImport(access: Access, removal: Removal): Archive["importRecords"] {
  const { group, recent } = access;
  const statements = prepareImport(access);

  function importStaged(staged: Iterable<StagedRow>): ImportResult {
    removeMarked();
    const added: string[] = [];
    const tips: (readonly [sessionId: string, tip: string])[] = [];
    let [isSameKey, turns, hintsTaken] = [false, 0, 0];
    for (const { type, record } of staged) {
      const row: unknown[] = JSON.parse(record);
      switch (type) {
        case "store":
          isSameKey = takeKey(toBytes(row[0]));
          for (const sealKey of row.slice(1)) addSeal(String(sealKey));
          break;
        case "session": {
          const { isNew, isHintTaken } = addSession(row as SessionRow, isSameKey);
          if (isNew) added.push(String(row[0]));
          else if (row[3] !== null) tips.push([String(row[0]), String(row[3])]);
          if (isHintTaken) hintsTaken += 1;
          break;
        }
        case "turn":
          if (addTurn(row as TurnRow)) turns += 1;
          break;
      }
    }
    for (const sessionId of added) checkTip(sessionId);
    for (const [sessionId, tip] of tips) statements.setTip.run(tip, sessionId, tip);
    return { sessions: added.length, turns, hintsTaken };
  }

  function removeMarked(): void {
    for (let marked = removal.nextMarked(); marked !== undefined; marked = removal.nextMarked()) {
      removal.removeSome(marked, Number.MAX_SAFE_INTEGER);
    }
  }

  /** False if hints are hashed with another key already. */
  function takeKey(key: Buffer): boolean {
    if (key.equals(access.readHintKey())) return true;
    if (statements.hasHints.get() !== undefined) return false;
    statements.adoptKey.run(key);
    return true;
  }

  /** The first becomes the store's own if it has none yet. */
  function addSeal(sealKey: string): void {
    const bytes = toBytes(sealKey);
    statements.addMeta.run("secret:seal", bytes);
    if (statements.isOwnSeal.get(bytes) === undefined) statements.addMeta.run(`foreign_seal:${sealKey}`, bytes);
  }

  /** A session that has begun under the same hint meanwhile keeps it. */
  function addSession(
    [id, owner, hint, ...rest]: SessionRow,
    isSameKey: boolean,
  ): { readonly isNew: boolean; readonly isHintTaken: boolean } {
    const known = statements.findSession.get(id) as { hint: Uint8Array | null } | undefined;
    if (known !== undefined && (known.hint !== null || !isSameKey)) return { isNew: false, isHintTaken: false };
    if (hint !== null && !isSameKey) throw otherKey();
    const hash = hint === null ? null : toBytes(hint);
    const isHintTaken = hash !== null && statements.isTaken.get(owner, hash) !== undefined;
    const free = isHintTaken ? null : hash;
    if (known === undefined) statements.addSession.run(id, owner, free, ...rest);
    else statements.setHint.run(free, id, owner);
    return { isNew: known === undefined, isHintTaken };
  }

  function addTurn(row: TurnRow): boolean {
    const [id, owner, session, parent] = row;
    const ownerOfTurn = (turnId: string) => statements.ownerOfTurn.get(turnId)?.["owner"];
    if (ownerOfTurn(id) !== undefined) return false;
    const place = { id, owner, session: session ?? undefined, parent: parent ?? undefined };
    checkPlace(place, (sessionId) => statements.ownerOfSession.get(sessionId)?.["owner"], ownerOfTurn);
    statements.addTurn.run(...row);
    removal.noteEnd(id);
    return true;
  }

  /** A turn deleted during the export is no tip; another session's may be: deletion moves a tip to its parent. */
  function checkTip(sessionId: string): void {
    statements.dropTip.run(sessionId);
    const stray = statements.findStrayTip.get(sessionId);
    if (stray !== undefined)
      throw mixedOwners(`the tip of the session ${sessionId} is the turn ${String(stray["tip"])}`);
  }

  return async (records) => {
    const staging = createStaging(toStaged, access.inMemory);
    try {
      for await (const record of records) staging.add(record);
      return await group.add(
        () => importStaged(staging.read()),
        () => {
          recent.clear();
          access.rekey();
        },
      );
    } finally {
      staging.close();
    }
  };
}

function toBytes(base64: unknown): Buffer {
  return Buffer.from(String(base64), "base64url");
}

type SessionRow = [
  id: string,
  owner: string,
  hint: string | null,
  tip: string | null,
  resends: number,
  metadata: string,
  created: number,
  updated: number,
  active: number,
];

function toStaged(record: ArchiveRecord): TurnRow | SessionRow | readonly string[] {
  if (record.type === "store") return [record.hintKey, ...(record.sealKeys ?? [])];
  if (record.type === "turn") return toRow(record.turn);
  const { id, owner, hint, tip, resends, metadata, createdAt, updatedAt } = record;
  const [created, updated] = [createdAt.getTime(), updatedAt.getTime()];
  const json = JSON.stringify(metadata);
  return [id, owner, hint ?? null, tip ?? null, resends ? 1 : 0, json, created, updated, hourOf(updated)];
}

function prepareImport({ prepare }: Access) {
  return {
    hasHints: prepare("SELECT 1 FROM sessions WHERE hint IS NOT NULL LIMIT 1"),
    adoptKey: prepare("UPDATE meta SET value = ? WHERE key = 'hint_key'"),
    addMeta: prepare("INSERT OR IGNORE INTO meta (key, value) VALUES (?, ?)"),
    isOwnSeal: prepare("SELECT 1 FROM meta WHERE key = 'secret:seal' AND value = ?"),
    ownerOfSession: prepare("SELECT owner FROM sessions WHERE id = ?"),
    findSession: prepare("SELECT hint FROM sessions WHERE id = ?"),
    setHint: prepare("UPDATE sessions SET hint = ? WHERE id = ? AND owner = ?"),
    isTaken: prepare("SELECT 1 FROM sessions WHERE owner = ? AND hint = ?"),
    ownerOfTurn: prepare("SELECT owner FROM turns WHERE id = ?"),
    addSession: prepare(`
      INSERT INTO sessions (id, owner, hint, tip, resends, metadata, created, updated, active)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    addTurn: prepare(addRow),
    dropTip: prepare(`
      UPDATE sessions SET tip = NULL WHERE id = ? AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = sessions.tip)`),
    setTip: prepare(`
      UPDATE sessions SET tip = ? WHERE id = ? AND tip IS NULL AND owner = (SELECT owner FROM turns WHERE turns.id = ?)`),
    findStrayTip: prepare(`
      SELECT sessions.tip FROM sessions JOIN turns ON turns.id = sessions.tip
      WHERE sessions.id = ? AND turns.owner <> sessions.owner`),
  };
}
