/** Adds turns to the SQLite store, and ends running ones. */
import { toAbandoned } from "../../core/frame/replay.ts";
import type { Commit, IdempotencyKey, TurnWriter } from "../../core/store.ts";
import { withoutTold } from "../paths.ts";
import { type CommitLookup, judge, remainingSession, toRemainingPlace } from "../verdict.ts";
import type { Access } from "./access.ts";
import type { Removal } from "./removal.ts";
import { isVisible } from "./search.ts";
import { type TurnRow, addRow, sizeOf, toRow, toTurn, turnColumns } from "../row.ts";

/** Sessions are found by the hour of their last turn. */
export function hourOf(time: number): number {
  return Math.floor(time / 3_600_000);
}

export function createTurnWriter(
  access: Access,
  lookup: CommitLookup,
  removal: Removal,
): Pick<TurnWriter, "commit" | "begin" | "end" | "endRunning"> {
  const { group, recent, now, hashHint, hashKey } = access;
  const statements = prepareTurnWriter(access);

  /** Judges a commit and writes it. Returns the ids of turns that `forget` changed; undefined if it is refused. */
  function store(commit: Commit, rows: readonly TurnRow[]): readonly string[] | undefined {
    const verdict = judge(commit, lookup);
    if (verdict === "refuse") return undefined;
    const { turns, session: move, key, begun, forget = [] } = commit;
    const { id: tip, owner, session } = turns[1] ?? turns[0];
    const sessionId = move?.id ?? session;
    const resends = move?.resends === true ? 1 : 0;
    const time = now().getTime();
    const hour = hourOf(time);
    if (verdict === "keep-and-create" && move?.hint !== undefined) {
      const hint = hashHint(owner, move.hint);
      const added = statements.addSession.run(move.id, owner, hint, tip, resends, time, time, hour);
      // A session with this id is being deleted.
      if (added.changes === 0) return undefined;
    } else if (sessionId !== undefined) {
      statements.touchSession.run(verdict === "keep-and-move" ? tip : null, resends, time, sessionId);
      statements.moveHour.run(hour, sessionId, hour);
    }
    for (const row of rows)
      if (begun === true && row[0] === tip) replace(row);
      else statements.addTurn.run(...row);
    // The turn that the tip leaves, or does not reach.
    if (verdict === "keep" && sessionId !== undefined) removal.noteEnd(tip);
    else if (move?.expectedTip !== undefined && move.expectedTip !== turns[0].parent) removal.noteEnd(move.expectedTip);
    if (key !== undefined) storeKey(owner, key, tip);
    return forget.length === 0 ? [] : removal.forget(owner, sessionId, forget);
  }

  function storeKey(owner: string, { key, fingerprint }: IdempotencyKey, turnId: string): void {
    statements.storeKey.run(owner, hashKey(owner, key), fingerprint, turnId, now().getTime());
  }

  /** Also renumbers it, because it arrives only now. Its key stays. */
  function replace([id, owner, ...rest]: TurnRow): boolean {
    return statements.replaceRunning.run(...rest, id, owner).changes === 1;
  }

  return {
    async commit(commit) {
      // Serialised before joining the group, so that what cannot be serialised fails alone and transactions are short.
      const rows = commit.turns.map(toRow);
      let isWritten = false;
      const keeping = group.add(
        () => store(commit, rows),
        (forgotten) => {
          if (forgotten === undefined) return;
          isWritten = true;
          for (const [index, turn] of commit.turns.entries()) recent.add(withoutTold(turn), sizeOf(rows[index]));
          recent.forget(forgotten);
        },
      );
      try {
        return (await keeping) !== undefined;
      } catch (thrown) {
        const { id, owner } = commit.turns.at(-1) ?? commit.turns[0];
        // One that was acknowledged may stay.
        if (isWritten && commit.begun !== true)
          access.undoLater(() => removal.removeTurn(owner, id, commit.session?.expectedTip));
        throw thrown;
      }
    },
    async begin(turn, key) {
      const row = toRow(turn);
      await group.add(() => {
        row[2] = remainingSession(turn, lookup) ?? null;
        statements.addTurn.run(...row);
        if (key !== undefined) storeKey(turn.owner, key, turn.id);
      });
    },
    async end(turn) {
      return group.add(() => replace(toRow(toRemainingPlace(turn, lookup))));
    },
    async endRunning(failure, endedAt, isAbandoned = () => true) {
      return group.add(() => {
        // Most are live, and their input may be long.
        const running = statements.listRunning.all() as { id: string; created: number }[];
        const left = running.filter(({ id, created }) => isAbandoned({ id, createdAt: new Date(created) }));
        for (const { id } of left) {
          const row = statements.readRunning.get(id) as unknown as TurnRow;
          replace(toRow(toAbandoned(toTurn(row), failure, endedAt)));
        }
        return left.length;
      });
    },
  };
}

function prepareTurnWriter({ prepare }: Access) {
  const readRunning = prepare(`SELECT ${turnColumns} FROM turns WHERE id = ? AND status = 'running'`, "arrays");
  const changed = turnColumns.replace("id, owner, ", "").replaceAll(/\w+/g, "$& = ?");
  return {
    listRunning: prepare(
      "SELECT id, created FROM turns INDEXED BY running_turns WHERE status = 'running' ORDER BY rowid",
    ),
    readRunning,
    addTurn: prepare(addRow),
    replaceRunning: prepare(`
      UPDATE turns SET rowid = (SELECT max(rowid) + 1 FROM turns), ${changed}
      WHERE id = ? AND owner = ? AND status = 'running' AND ${isVisible}`),
    addSession: prepare(
      "INSERT OR IGNORE INTO sessions (id, owner, hint, tip, resends, created, updated, active) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    touchSession: prepare(
      "UPDATE sessions SET tip = coalesce(?, tip), resends = max(resends, ?), updated = ? WHERE id = ?",
    ),
    // A separate statement: an UPDATE writes every index of the columns that it names.
    moveHour: prepare("UPDATE sessions SET active = ? WHERE id = ? AND active <> ?"),
    storeKey: prepare(`
      INSERT INTO keys (owner, hash, fingerprint, turn, created) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (owner, hash) DO UPDATE SET
        fingerprint = excluded.fingerprint, turn = excluded.turn, created = excluded.created`),
  };
}
