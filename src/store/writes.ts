/** What is written though no turn waits for it, each in one transaction; and how a turn is added. */
import type { Metadata } from "../core/store.ts";
import { cold, type Tables, toNumber } from "./cold.ts";
import { createDeletions } from "./deletions.ts";
import { createImport } from "./import.ts";
import { createAging } from "./retention.ts";
import type { NewSession, TurnRow } from "./rows.ts";
import { at } from "./tables.ts";

export type Writes = ReturnType<typeof createWrites>;

/** A conversation, as its owner described it. */
interface Described {
  readonly name: string;
  readonly owner: string;
  readonly metadata: Metadata;
  readonly at: number;
}

/** `nextNumber`: what gives a new session its number, as each engine can. */
export function createWrites(tables: Tables, nextNumber: string) {
  const { one, run } = tables;
  const deletions = createDeletions(tables);
  const addTurn = createAddTurn(tables);

  async function addSession(session: NewSession, metadata: string): Promise<number> {
    const [, , , , created] = session;
    const added = await one<Numbered>(addStatement(nextNumber), ...session, created, metadata);
    return added?.n ?? 0;
  }

  return {
    ...deletions.writes,
    ...createAging(tables, deletions),
    ...createImport(tables, {
      addSession,
      addTurn: async (row) => addTurn((await one<Numbered>(cold.sessionById, row.session[0]))?.n ?? 0, row),
    }),

    /** It hangs below the tip, wherever that stands by now. False: there is no such conversation. */
    async append(row: TurnRow): Promise<boolean> {
      const { session, values } = row;
      const [id, name, owner, , created] = session;
      const known = await one<Tip & Numbered>(cold.conversation, id, name, owner);
      if (known === undefined) return false;
      const { n, tip } = known;
      const above = tip === null ? undefined : await one<{ readonly depth: number }>(cold.depth, tip);
      await addTurn(n, { ...row, values: values.with(at("parent"), tip).with(at("depth"), (above?.depth ?? 0) + 1) });
      await run(cold.moveTip, values[0] ?? null, created, created, n);
      return true;
    },

    async createConversation(given: Described & { readonly first: TurnRow | undefined }): Promise<void> {
      const { name, owner, metadata, at: created, first } = given;
      const n = await addSession([toNumber(name), name, owner, "named", created], JSON.stringify(metadata));
      if (first === undefined) return;
      await addTurn(n, first);
      await run(cold.setTip, Number(first.values[0]), n);
    },

    async describe({ name, owner, metadata, at: now }: Described): Promise<boolean> {
      return (await run(cold.describe, JSON.stringify(metadata), now, toNumber(name), name, owner)) === 1;
    },
  };
}

/** With its calls and its long texts. */
export function createAddTurn({ run }: Pick<Tables, "run">) {
  return async (n: number, { values, calls = none, texts = none }: TurnRow): Promise<void> => {
    const [turn = null] = values;
    await run(cold.addTurn, n, ...values);
    for (const call of calls) await run(cold.addCall, n, call, turn);
    for (const [digest, text] of texts) {
      await run(cold.addText, n, digest, text);
      await run(cold.addTextUse, n, digest, turn);
    }
  };
}

export interface Numbered {
  readonly n: number;
}

interface Tip {
  readonly tip: number | null;
}

const none: readonly never[] = [];

const addStatement = (
  nextNumber: string,
) => `INSERT INTO session (id, n, name, owner, kind, shows, created, used, metadata)
  VALUES (?, ${nextNumber}, ?, ?, ?, 0, ?, ?, ?) RETURNING n`;
