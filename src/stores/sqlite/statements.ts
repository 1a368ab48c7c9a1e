/** Everything that the SQLite store asks of its tables, prepared once. */
import type { DatabaseSync } from "node:sqlite";
import { turnColumns } from "./row.ts";

export function prepareStatements(database: DatabaseSync) {
  const findTurn = database.prepare(`SELECT ${turnColumns} FROM turns WHERE id = ? AND owner = ?`);
  // Whole rows go through the recursion, from the tip to the root: one look-up a turn. Rows as arrays cost a seventh less.
  const readPath = database.prepare(`
    WITH RECURSIVE path AS (
      SELECT ${turnColumns} FROM turns WHERE id = ?
      UNION ALL
      SELECT ${turnColumns.replaceAll(/\w+/g, "turns.$&")} FROM path JOIN turns ON turns.id = path.parent
    ) SELECT * FROM path`);
  findTurn.setReturnArrays(true);
  readPath.setReturnArrays(true);
  return {
    findTurn,
    readPath,
    ...prepareSearch(database),
    hasTurn: database.prepare("SELECT 1 FROM turns WHERE id = ? AND owner = ?"),
    addTurn: database.prepare(`INSERT INTO turns (${turnColumns}) VALUES (${turnColumns.replaceAll(/\w+/g, "?")})`),
    findSession: database.prepare("SELECT id, owner, tip, resends FROM sessions WHERE owner = ? AND hint = ?"),
    readSession: database.prepare("SELECT id, owner, tip, resends FROM sessions WHERE id = ?"),
    addSession: database.prepare(
      "INSERT INTO sessions (id, owner, hint, tip, resends, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    touchSession: database.prepare(
      "UPDATE sessions SET tip = coalesce(?, tip), resends = max(resends, ?), updated = ? WHERE id = ?",
    ),
    check: database.prepare("SELECT count(*) FROM meta"),
  };
}

/**
 * Finds turns by what was said. Each names its index, as the planner could as well walk through the whole session. Rows
 * are numbered as they arrive, so the largest number is the newest.
 */
function prepareSearch(database: DatabaseSync) {
  const twins = "FROM turns INDEXED BY turns_by_digest WHERE digest = $digest AND session = $session";
  const isLeaf = "NOT EXISTS (SELECT 1 FROM turns AS child WHERE child.parent = turns.id)";
  return {
    // The second half runs only when the first found nothing.
    findByDigest: database.prepare(`
      SELECT * FROM (SELECT id, 0 AS has_children ${twins} AND ${isLeaf} ORDER BY rowid DESC LIMIT 1)
      UNION ALL
      SELECT * FROM (SELECT id, 1 AS has_children ${twins} ORDER BY rowid DESC LIMIT 1)
      LIMIT 1`),
    // The rows of json_each come in the order of the list, so that the search ends at the first hit.
    findKnownDigest: database.prepare(`
      SELECT wanted.key AS place, wanted.value AS digest FROM json_each(?) AS wanted
      WHERE EXISTS (SELECT 1 FROM turns INDEXED BY turns_by_digest WHERE digest = wanted.value AND session = ?)
      ORDER BY wanted.rowid LIMIT 1`),
    findByExchange: database.prepare(`
      SELECT id FROM turns INDEXED BY turns_by_exchange WHERE exchange = ? AND session = ?
      ORDER BY rowid DESC LIMIT 8`),
    countRoots: database.prepare(`
      SELECT count(*) AS count FROM (
        SELECT 1 FROM turns INDEXED BY roots_by_session WHERE session = ? AND parent IS NULL LIMIT 2)`),
  };
}
