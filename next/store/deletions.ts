/** Deleting is real: with a turn go its calls and its long texts, with the last one a hidden session; tips step back. */
import { keyOf, type Item } from "../core/item.ts";
import { cold } from "./cold.ts";
import type { Prepare } from "./prepared.ts";
import { digestsIn, inputId } from "./rows.ts";
import { toNumber } from "./schema.ts";

/** How many of them one step removes. */
const stepTurns = 100;
const stepCalls = 1_000;

/** Whom a session belongs to decides only where a caller asks. */
export interface SessionNamed {
  readonly name: string;
  readonly owner?: string | undefined;
}

export interface Erasure extends SessionNamed {
  /** Turns that began before it may not bring the session back. */
  readonly moment: string;
  readonly at: number;
}

export interface DoomedTurn {
  readonly n: number;
  readonly parent: number | null;
  readonly session: number;
  readonly input: string;
  readonly answer: string;
  readonly told: string;
  readonly echo: string | null;
  readonly created: number;
  readonly tip: number | null;
  readonly kind: string;
}

export type Deletions = ReturnType<typeof createDeletions>;

export function createDeletions(prepare: Prepare) {
  const notes = createNotes(prepare);
  const read = (n: number): DoomedTurn | undefined => prepare(cold.doomedTurn).get(n) as DoomedTurn | undefined;
  const isFollowed = (n: number): boolean => prepare(cold.isFollowed).get(n) !== undefined;

  /** Its row and all that hangs on it; what follows it begins a thread. */
  function removeTurn(row: DoomedTurn): void {
    prepare(cold.removeTurn).run(row.n);
    prepare(cold.freeFollowers).run(row.n);
    leave(row);
    prepare(cold.removeBareHidden).run(row.session);
  }

  /** Nothing leads to the turn any more but what hangs below it. */
  function leave({ n, session, parent, input, answer, echo, tip }: DoomedTurn): void {
    for (const id of callsIn(answer)) prepare(cold.removeCall).run(session, id, n);
    dropTexts(session, n, digestsIn(input, echo));
    if (tip === n) prepare(cold.setTip).run(findKept(parent), session);
  }

  function dropTexts(session: number, turn: number, digests: readonly string[]): void {
    for (const digest of digests) {
      prepare(cold.removeTextUse).run(session, digest, turn);
      prepare(cold.removeUnusedText).run(session, digest);
    }
  }

  /** The nearest turn from here up that was not deleted. */
  function findKept(from: number | null): number | null {
    for (let n = from; n !== null;) {
      const row = read(n);
      if (row === undefined) return null;
      if (row.told !== "") return n;
      n = row.parent;
    }
    return null;
  }

  /** Empty nodes that hold nothing together any more go with what they held; what is now an end may be old already. */
  function removeEnd(row: DoomedTurn): void {
    let end: DoomedTurn | undefined = row;
    while (end?.told === "" || end === row) {
      removeTurn(end);
      const above: DoomedTurn | undefined = end.parent === null ? undefined : read(end.parent);
      end = above === undefined || isFollowed(above.n) ? undefined : above;
    }
    if (end !== undefined && notes.read("aged") >= end.n) notes.write("aged", end.n - 1);
  }

  const writes = {
    forget({ owner, key }: { readonly owner: string; readonly key: string }): boolean {
      const found = prepare(cold.response).get(toNumber(key), key, owner) as { readonly n: number } | undefined;
      const row = found && read(found.n);
      if (row === undefined) return false;
      if (isFollowed(row.n)) {
        prepare(cold.emptyTurn).run(row.n);
        leave(row);
      } else removeEnd(row);
      return true;
    },

    /** Undefined: there is no such item. Where it was a null stands. */
    deleteItem({ name, owner, item: id }: SessionNamed & { readonly item: string }): boolean {
      const session = prepare(cold.conversation).get(toNumber(name), name, owner ?? "") as SessionRead | undefined;
      const key = keyOf(id);
      const row = session && (prepare(cold.turnOfSession).get(toNumber(key), session.n) as TurnItems | undefined);
      if (session === undefined || row === undefined || row.key !== key) return false;
      const [input, answer] = [row.input, row.answer].map((text) => JSON.parse(text) as (Item | null)[]);
      const asked = input?.findIndex((item, index) => item !== null && inputId(item, key, index) === id) ?? -1;
      const said = answer?.findIndex((item) => item?.id === id) ?? -1;
      if (asked < 0 && said < 0) return false;
      const gone = asked >= 0 ? input?.splice(asked, 1, null)[0] : answer?.splice(said, 1, null)[0];
      const texts = [JSON.stringify(input), JSON.stringify(answer)] as const;
      prepare(cold.setItems).run(...texts, row.n);
      if (gone?.type === "tool-call") prepare(cold.removeCall).run(session.n, gone.callId, row.n);
      const kept = new Set(digestsIn(texts[0], row.echo));
      dropTexts(
        session.n,
        row.n,
        digestsIn(row.input, null).filter((digest) => !kept.has(digest)),
      );
      return true;
    },

    /** Invisible from now on; its turns are removed little by little. False: there was none. */
    dropSession({ name, owner, moment, at }: Erasure): boolean {
      const id = toNumber(name);
      const row = prepare(cold.sessionNumber).get(id, name) as SessionRead | undefined;
      if (owner !== undefined && (row?.owner !== owner || row.kind === "hidden")) return false;
      prepare(cold.markErased).run(id, toNumber(moment), at);
      if (row === undefined) return false;
      prepare(cold.removeSession).run(id);
      prepare(cold.doom).run(row.n);
      return true;
    },

    /** Turns of a hidden session, those that follow others first. */
    dropTurns({ turns, ...erasure }: Erasure & { readonly turns: readonly number[] }): number {
      prepare(cold.markErased).run(toNumber(erasure.name), toNumber(erasure.moment), erasure.at);
      let removed = 0;
      for (const n of turns) {
        const row = read(n);
        if (row === undefined) continue;
        removeEnd(row);
        removed += 1;
      }
      return removed;
    },

    /** Removes some turns of sessions that are gone. */
    removeDoomed(): { readonly turns: number; readonly isDone: boolean } {
      const doomed = prepare(cold.nextDoomed).get() as { readonly n: number } | undefined;
      if (doomed === undefined) return { turns: 0, isDone: true };
      const { n: session } = doomed;
      const turns = prepare(cold.turnsOfDoomed).all(session, stepTurns) as unknown as readonly { readonly n: number }[];
      for (const { n } of turns) prepare(cold.removeTurn).run(n);
      if (turns.length > 0) return { turns: turns.length, isDone: false };
      if (Number(prepare(cold.callsOfDoomed).run(session, session, stepCalls).changes) > 0)
        return { turns: 0, isDone: false };
      prepare(cold.usesOfDoomed).run(session);
      prepare(cold.textsOfDoomed).run(session);
      prepare(cold.removeDoomed).run(session);
      return { turns: 0, isDone: false };
    },
  };
  return { read, isFollowed, removeTurn, writes };
}

/** Numbers that the retention goes by. */
export function createNotes(prepare: Prepare) {
  return {
    read: (name: string): number => Number(prepare(cold.note).get(name)?.["value"] ?? 0),
    write: (name: string, value: number): void => void prepare(cold.setNote).run(name, String(value)),
  };
}

function callsIn(answer: string): readonly string[] {
  const items = JSON.parse(answer) as readonly (Item | null)[];
  return items.flatMap((item) => (item?.type === "tool-call" ? [item.callId] : []));
}

interface SessionRead {
  readonly n: number;
  readonly owner: string;
  readonly kind: string;
}

interface TurnItems {
  readonly n: number;
  readonly key: string;
  readonly input: string;
  readonly answer: string;
  readonly echo: string | null;
}
