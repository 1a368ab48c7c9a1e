/** Converts turns to scripts' arguments, and replies back. */
import type { StoredTurn } from "../../core/store.ts";
import type { Step } from "../paths.ts";
import { type TurnRow, sizeOf, toPathTurn, toRow, toTurn } from "../row.ts";
import { type Reply, toList, toText } from "./script.ts";

/** A turn as arguments of a script: then what was told, pieces and memo. What is absent is an empty text. */
export type TurnParts = readonly [id: string, meta: string, input: string, output: string, ...more: string[]];

export function toParts(turn: StoredTurn): TurnParts {
  const [id, owner, session, parent, created, model, status, input, output, ...more] = toRow(turn);
  const [usage, digest, exchange, gap, ended, told, pieces, memo] = more;
  const places = [session ?? "", parent ?? "", status, gap, digest ?? "", exchange ?? "", String(created)];
  // Half a surrogate pair is not a character: Redis gets UTF-8, and its JSON reader refuses the escape.
  const meta = [owner.toWellFormed(), ...places, "", String(ended ?? ""), model.toWellFormed(), usage ?? ""];
  return [id, JSON.stringify(meta), input, output, told ?? "", pieces ?? "", memo ?? ""];
}

/** How many characters its items have. */
export function sizeOfParts([, , input, output]: TurnParts): number {
  return input.length + output.length;
}

export function readTurn(reply: Reply): StoredTurn {
  return toTurn(readRow(reply));
}

export function readStep(reply: Reply): Step {
  const row = readRow(reply);
  return { turn: toPathTurn(row), size: sizeOf(row) };
}

/** A step of a path lacks what was told beside the items. */
function readRow(reply: Reply): TurnRow {
  const [id, m, input, output, told, pieces, memo] = toList(reply);
  const [owner, session, parent, status, gap, digest, exchange, created, , ended, model, usage]: MetaTexts = JSON.parse(
    String(m),
  );
  return [
    String(id),
    owner,
    orNull(session),
    orNull(parent),
    Number(created),
    model,
    status,
    String(input),
    String(output),
    orNull(usage),
    orNull(digest),
    orNull(exchange),
    gap,
    ended === "" ? null : Number(ended),
    toText(told) ?? null,
    toText(pieces) ?? null,
    toText(memo) ?? null,
  ];
}

function orNull(text: string): string | null {
  return text === "" ? null : text;
}

/** What scripts know of a turn, in their order. */
type MetaTexts = [
  owner: string,
  session: string,
  parent: string,
  status: StoredTurn["status"],
  gap: number,
  digest: string,
  exchange: string,
  created: string,
  number: string,
  ended: string,
  model: string,
  usage: string,
];
