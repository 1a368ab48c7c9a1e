/** Converts turns to rows of texts and numbers, as a store keeps them, and back. */
import type { PathTurn, StoredTurn, Told } from "../core/store.ts";

/** The columns in the order of a row. */
export const turnColumns =
  "id, owner, session, parent, created, model, status, input, output, usage, digest, exchange, gap, ended, told, pieces, memo";

/** SQL that adds a row. */
export const addRow = `INSERT INTO turns (${turnColumns}) VALUES (${turnColumns.replaceAll(/\w+/g, "?")})`;

/**
 * Items, usage, pieces and what was told are JSON text, dates are milliseconds since 1970. The pieces have their own
 * column, so that they can be deleted alone; the memo is text already.
 */
export type TurnRow = [
  id: string,
  owner: string,
  session: string | null,
  parent: string | null,
  created: number,
  model: string,
  status: StoredTurn["status"],
  input: string,
  output: string,
  usage: string | null,
  digest: string | null,
  exchange: string | null,
  gap: number,
  ended: number | null,
  told: string | null,
  pieces: string | null,
  memo: string | null,
];

/** The columns that a path needs. */
export const pathColumns = turnColumns.replace(/, ended.*$/, "");

export function toRow(turn: StoredTurn): TurnRow {
  const { endedAt, pieces, memo, ...told } = turn.told ?? {};
  return [
    turn.id,
    turn.owner,
    turn.session ?? null,
    turn.parent ?? null,
    turn.createdAt.getTime(),
    turn.model,
    turn.status,
    JSON.stringify(turn.input),
    JSON.stringify(turn.output),
    turn.usage === undefined ? null : JSON.stringify(turn.usage),
    turn.digest ?? null,
    turn.exchange ?? null,
    turn.gap === true ? 1 : 0,
    endedAt?.getTime() ?? null,
    turn.told === undefined ? null : JSON.stringify(told),
    pieces === undefined ? null : JSON.stringify(pieces),
    memo ?? null,
  ];
}

/** How many characters its items have. */
export function sizeOf(row: TurnRow | undefined): number {
  const [, , , , , , , input = "", output = ""] = row ?? [];
  return input.length + output.length;
}

export function toTurn(row: TurnRow): StoredTurn {
  const told = toTold(row);
  return { ...toPathTurn(row), ...(told !== undefined && { told }) };
}

/** Leaves out what was told beside the items, which a path does not need. */
export function toPathTurn(row: TurnRow): PathTurn {
  const [id, owner, session, parent, created, model, status, input, output, usage, digest, exchange, gap] = row;
  return {
    id,
    owner,
    session: session ?? undefined,
    parent: parent ?? undefined,
    createdAt: new Date(created),
    model,
    input: JSON.parse(input),
    output: JSON.parse(output),
    status,
    usage: usage === null ? undefined : JSON.parse(usage),
    digest: digest ?? undefined,
    exchange: exchange ?? undefined,
    ...(gap === 1 && { gap: true }),
  };
}

function toTold([, , , , , , , , , , , , , ended, json, pieces, memo]: TurnRow): Told | undefined {
  if (json === null) return undefined;
  const told: Omit<Told, "endedAt" | "pieces" | "memo"> = JSON.parse(json);
  return {
    ...told,
    // JSON leaves out undefined fields.
    history: told.history,
    contextItems: told.contextItems,
    endedAt: ended === null ? undefined : new Date(ended),
    ...(pieces !== null && { pieces: JSON.parse(pieces) }),
    ...(memo !== null && { memo }),
  };
}
