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
  const read = async (n: number | null): Promise<DoomedTurn | undefined> =>
    n === null ? undefined : one(cold.doomedTurn, n);
  const isFollowed = async (n: number): Promise<boolean> => (await one(cold.isFollowed, n)) !== undefined;

  /** Its row and all that hangs on it; what follows it begins a thread. */
  async function removeTurn(row: DoomedTurn): Promise<void> {
    await run(cold.removeTurn, row.n);
    await run(cold.freeFollowers, row.n);
    await leave(row);
    await run(cold.removeBareHidden, row.session);
  }

  /** Nothing leads to the turn any more but what hangs below it. */
  async function leave({ n, session, parent, input, answer, echo, tip }: DoomedTurn): Promise<void> {
    for (const id of callsIn(JSON.parse(answer) as (Item | null)[])) await run(cold.removeCall, session, id, n);
    await run(cold.removeRecord, n);
    await dropTexts(session, n, digestsIn(input, echo));
    if (tip === n) await run(cold.setTip, parent, session);
  }

  async function dropTexts(session: number, turn: number, digests: readonly string[]): Promise<void> {
    for (const digest of digests) {
      await run(cold.removeTextUse, session, digest, turn);
      await run(cold.removeUnusedText, session, digest);
    }
  }

  /** Empty nodes that hold nothing together any more go with what they held; what is now an end may be old already. */
  async function removeEnd(row: DoomedTurn): Promise<void> {
    let end: DoomedTurn | undefined = row;
    while (end?.told === "" || end === row) {
      await removeTurn(end);
      const above = await read(end.parent);
      end = above === undefined || (await isFollowed(above.n)) ? undefined : above;
    }
    if (end !== undefined && (await notes.read("aged")) >= end.n) await notes.write("aged", end.n - 1);
  }

  /** Its text is gone; where others follow it, an empty node holds the tree together. */
  async function takeOut(row: DoomedTurn): Promise<void> {
    if (!(await isFollowed(row.n))) return removeEnd(row);
    await run(cold.emptyTurn, row.n);
    await leave(row);
  }

  /** A turn that began before this moment cannot bring back the session or person. The mark lasts a day, longer than any turn. */
  async function markErased({ name, moment, at }: Omit<Erasure, "owner">): Promise<void> {
    await run(cold.forgetErased, at - dayMs);
    await run(cold.markErased, toNumber(name), toNumber(moment), at);
  }

  const writes = {
    markErased,

    async forget({ owner, key }: { readonly owner: string; readonly key: string }): Promise<boolean> {
      const found = await one<{ readonly n: number }>(cold.response, toNumber(key), key, owner);
      const row = found && (await read(found.n));
      if (row !== undefined) await takeOut(row);
      return row !== undefined;
    },

    /** Removes some of a person's turns in sessions that something else named. Returns their keys; none when none are left. */
    async takeOutPerson({ person }: { readonly person: number }): Promise<readonly string[]> {
      const keys: string[] = [];
      for (const { n } of await all<{ readonly n: number }>(cold.turnsOfPerson, person, stepTurns)) {
        const row = await read(n);
        if (row === undefined) continue;
        await takeOut(row);
        keys.push(row.key);
      }
      return keys;
    },

    /** Waits until the turns that were being stored when an erasure was marked are stored. Here the order of writes does that. */
    async awaitCommits(): Promise<void> {},

    /** Where it was a null stands. False: there is none. */
    async deleteItem(given: {
      readonly name: string;
      readonly owner: string;
      readonly item: string;
    }): Promise<boolean> {
      const { name, owner, item: id } = given;
      const session = await one<SessionRead>(cold.conversation, toNumber(name), name, owner);
      const key = keyOf(id);
      const row = await read(toNumber(key));
      if (session === undefined || row?.session !== session.n || row.key !== key) return false;
      const input = JSON.parse(row.input) as (Item | null)[];
      const answer = JSON.parse(row.answer) as (Item | null)[];
      const asked = input.findIndex((item, index) => item !== null && inputId(item, key, index) === id);
      const said = answer.findIndex((item) => item?.id === id);
      if (asked < 0 && said < 0) return false;
      const [gone] = asked < 0 ? answer.splice(said, 1, null) : input.splice(asked, 1, null);
      const left = JSON.stringify(input);
      await run(cold.setItems, left, JSON.stringify(answer), row.n);
      if (gone?.type === "tool-call") await run(cold.removeCall, session.n, gone.callId, row.n);
      const kept = digestsIn(left, row.echo);
      const dropped = digestsIn(row.input, null).filter((digest) => !kept.includes(digest));
      await dropTexts(session.n, row.n, dropped);
      return true;
    },

    /** Invisible from now on; its turns are removed little by little. False: there was none. */
    async dropSession({ name, owner, moment, at }: Erasure): Promise<boolean> {
      const id = toNumber(name);
      const row = await one<SessionRead>(cold.sessionNumber, id, name);
      if (owner !== undefined && (row?.owner !== owner || row.kind === "hidden")) return false;
      await markErased({ name, moment, at });
      if (row === undefined) return false;
      await run(cold.removeSession, id);
      await run(cold.doom, row.n);
      return true;
    },

    /** Ends streams that resume, and keys with the turns that only their key found. */
    async expire(given: { readonly keysBefore: number; readonly logsBefore: number }): Promise<Step> {
      const { keysBefore, logsBefore } = given;
      await run(cold.expireLogs, logsBefore);
      await run(cold.expireKeys, keysBefore);
      const unnamed = await all<{ readonly n: number }>(cold.expiredUnnamed, stepTurns);
      for (const { n } of unnamed) {
        const row = await read(n);
        if (row === undefined) await run(cold.removeRecord, n);
        else await removeEnd(row);
      }
      return { turns: 0, isDone: unnamed.length < stepTurns };
    },

    /** Removes some turns of sessions that are gone. */
    async removeDoomed(): Promise<Step> {
      const doomed = await one<{ readonly n: number }>(cold.nextDoomed);
      if (doomed === undefined) return { turns: 0, isDone: true };
      const turns = await all<{ readonly n: number }>(cold.turnsOfDoomed, doomed.n, stepTurns);
      for (const { n } of turns) {
        const row = await read(n);
        if (row !== undefined) await removeTurn(row);
      }
      if (turns.length === 0) await run(cold.removeDoomed, doomed.n);
      return { turns: turns.length, isDone: false };
    },
  };
  return { read, isFollowed, removeTurn, writes };
}

/** Numbers that the retention goes by. */
export function createNotes({ one, run }: Pick<Tables, "one" | "run">) {
  return {
    read: async (name: string): Promise<number> =>
      Number((await one<{ readonly value: string }>(cold.note, name))?.value ?? 0),
    async write(name: string, value: number): Promise<void> {
      await run(cold.setNote, name, String(value));
    },
  };
}

interface SessionRead {
  readonly n: number;
  readonly owner: string;
  readonly kind: string;
}
