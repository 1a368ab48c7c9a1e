/** Deleting is real: with a turn go its calls and its long texts, with the last one a hidden session; tips step back. */
import { inputId, keyOf, type Item } from "../core/item.ts";
import { cold, type Tables, toNumber } from "./cold.ts";
import { callsIn, digestsIn } from "./rows.ts";

/** How many turns one step removes. */
const stepTurns = 50;
export const dayMs = 86_400_000;

export interface Erasure {
  readonly name: string;
  /** Absent: whoever has it. */
  readonly owner?: string | undefined;
  /** Turns that began before it may not bring the session back. */
  readonly moment: string;
  readonly at: number;
}

/** What one of several transactions did. */
export interface Step {
  readonly turns: number;
  readonly isDone: boolean;
}

export interface DoomedTurn {
  readonly n: number;
  readonly key: string;
  readonly parent: number | null;
  readonly session: number;
  readonly input: string;
  readonly answer: string;
  readonly told: string;
  readonly echo: string | null;
  readonly created: number;
  readonly tip: number | null;
}

export type Deletions = ReturnType<typeof createDeletions>;

export function createDeletions({ one, all, run }: Tables) {
  const notes = createNotes({ one, run });
  const read = (n: number | null): DoomedTurn | undefined => (n === null ? undefined : one(cold.doomedTurn, n));
  const isFollowed = (n: number): boolean => one(cold.isFollowed, n) !== undefined;

  /** Its row and all that hangs on it; what follows it begins a thread. */
  function removeTurn(row: DoomedTurn): void {
    run(cold.removeTurn, row.n);
    run(cold.freeFollowers, row.n);
    leave(row);
    run(cold.removeBareHidden, row.session);
  }

  /** Nothing leads to the turn any more but what hangs below it. */
  function leave({ n, session, parent, input, answer, echo, tip }: DoomedTurn): void {
    for (const id of callsIn(JSON.parse(answer) as (Item | null)[])) run(cold.removeCall, session, id, n);
    run(cold.removeRecord, n);
    dropTexts(session, n, digestsIn(input, echo));
    if (tip === n) run(cold.setTip, parent, session);
  }

  function dropTexts(session: number, turn: number, digests: readonly string[]): void {
    for (const digest of digests) {
      run(cold.removeTextUse, session, digest, turn);
      run(cold.removeUnusedText, session, digest);
    }
  }

  /** Empty nodes that hold nothing together any more go with what they held; what is now an end may be old already. */
  function removeEnd(row: DoomedTurn): void {
    let end: DoomedTurn | undefined = row;
    while (end?.told === "" || end === row) {
      removeTurn(end);
      const above = read(end.parent);
      end = above === undefined || isFollowed(above.n) ? undefined : above;
    }
    if (end !== undefined && notes.read("aged") >= end.n) notes.write("aged", end.n - 1);
  }

  /** For a day: no turn runs that long. */
  function markErased({ name, moment, at }: Erasure): void {
    run(cold.forgetErased, at - dayMs);
    run(cold.markErased, toNumber(name), toNumber(moment), at);
  }

  const writes = {
    forget({ owner, key }: { readonly owner: string; readonly key: string }): boolean {
      const found = one<{ readonly n: number }>(cold.response, toNumber(key), key, owner);
      const row = found && read(found.n);
      if (row === undefined) return false;
      if (!isFollowed(row.n)) removeEnd(row);
      else {
        run(cold.emptyTurn, row.n);
        leave(row);
      }
      return true;
    },

    /** Where it was a null stands. False: there is none. */
    deleteItem(given: { readonly name: string; readonly owner: string; readonly item: string }): boolean {
      const { name, owner, item: id } = given;
      const session = one<SessionRead>(cold.conversation, toNumber(name), name, owner);
      const key = keyOf(id);
      const row = read(toNumber(key));
      if (session === undefined || row?.session !== session.n || row.key !== key) return false;
      const input = JSON.parse(row.input) as (Item | null)[];
      const answer = JSON.parse(row.answer) as (Item | null)[];
      const asked = input.findIndex((item, index) => item !== null && inputId(item, key, index) === id);
      const said = answer.findIndex((item) => item?.id === id);
      if (asked < 0 && said < 0) return false;
      const [gone] = asked < 0 ? answer.splice(said, 1, null) : input.splice(asked, 1, null);
      const left = JSON.stringify(input);
      run(cold.setItems, left, JSON.stringify(answer), row.n);
      if (gone?.type === "tool-call") run(cold.removeCall, session.n, gone.callId, row.n);
      const kept = digestsIn(left, row.echo);
      const dropped = digestsIn(row.input, null).filter((digest) => !kept.includes(digest));
      dropTexts(session.n, row.n, dropped);
      return true;
    },

    /** Invisible from now on; its turns are removed little by little. False: there was none. */
    dropSession({ name, owner, moment, at }: Erasure): boolean {
      const id = toNumber(name);
      const row = one<SessionRead>(cold.sessionNumber, id, name);
      if (owner !== undefined && (row?.owner !== owner || row.kind === "hidden")) return false;
      markErased({ name, moment, at });
      if (row === undefined) return false;
      run(cold.removeSession, id);
      run(cold.doom, row.n);
      return true;
    },

    /** Ends streams that resume, and keys with the turns that only their key found. */
    expire({ keysBefore, logsBefore }: { readonly keysBefore: number; readonly logsBefore: number }): Step {
      run(cold.expireLogs, logsBefore);
      run(cold.expireKeys, keysBefore);
      const unnamed = all<{ readonly n: number }>(cold.expiredUnnamed, stepTurns);
      for (const { n } of unnamed) {
        const row = read(n);
        if (row === undefined) run(cold.removeRecord, n);
        else removeEnd(row);
      }
      return { turns: 0, isDone: unnamed.length < stepTurns };
    },

    /** Removes some turns of sessions that are gone. */
    removeDoomed(): Step {
      const doomed = one<{ readonly n: number }>(cold.nextDoomed);
      if (doomed === undefined) return { turns: 0, isDone: true };
      const turns = all<{ readonly n: number }>(cold.turnsOfDoomed, doomed.n, stepTurns);
      for (const { n } of turns) {
        const row = read(n);
        if (row !== undefined) removeTurn(row);
      }
      if (turns.length === 0) run(cold.removeDoomed, doomed.n);
      return { turns: turns.length, isDone: false };
    },
  };
  return { read, isFollowed, removeTurn, writes };
}

/** Numbers that the retention goes by. */
export function createNotes({ one, run }: Pick<Tables, "one" | "run">) {
  return {
    read: (name: string): number => Number(one<{ readonly value: string }>(cold.note, name)?.value ?? 0),
    write: (name: string, value: number): void => void run(cold.setNote, name, String(value)),
  };
}

interface SessionRead {
  readonly n: number;
  readonly owner: string;
  readonly kind: string;
}
