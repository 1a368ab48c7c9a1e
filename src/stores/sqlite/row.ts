/** A turn as a row of the table `turns`, and back. */
import type { StoredTurn } from "../../core/ports.ts";

/** The columns in the order of a row. */
export const turnColumns = "id, owner, session, parent, created, model, status, input, output, usage, digest, exchange";

/** Items and usage are JSON text, dates are milliseconds since 1970. */
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
];

export function toRow(turn: StoredTurn): TurnRow {
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
  ];
}

/** How many characters its items have. */
export function sizeOf(row: TurnRow | undefined): number {
  const [, , , , , , , input = "", output = ""] = row ?? [];
  return input.length + output.length;
}

export function toTurn(row: TurnRow): StoredTurn {
  const [id, owner, session, parent, created, model, status, input, output, usage, digest, exchange] = row;
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
  };
}
