/** Takes in an archive whose lines are valid, in one transaction: all of it, or nothing. What is there stays as it is. */
import { closeSync, openSync, readSync } from "node:fs";
import { GatewayError } from "../core/errors.ts";
import type { Imported } from "../core/store.ts";
import type { HeadLine, Line, SessionLine, TurnLine } from "./archive.ts";
import { cold } from "./cold.ts";
import { createNotes } from "./deletions.ts";
import type { Prepare } from "./prepared.ts";
import { shorten, shortText, type TurnRow } from "./rows.ts";
import { toNumber } from "./schema.ts";
import { readSecrets } from "./secrets.ts";

interface Hands {
  addSession(id: number, name: string, owner: string, kind: string, metadata: string, created: number): number;
  addTurn(session: number, row: TurnRow): void;
}

export function createImport(prepare: Prepare, { addSession, addTurn }: Hands) {
  const notes = createNotes(prepare);

  /** Without a hinted session of its own a store takes over the archive's key: its hints are then found at once. */
  function takeKeys({ hintKeys, sealKeys }: HeadLine): void {
    const [first = ""] = hintKeys;
    if (prepare(cold.anyHinted).get() === undefined) prepare(cold.adoptSecret).run(first, "hints");
    for (const [kind, keys] of [
      ["hints", hintKeys],
      ["seals", sealKeys],
    ] as const) {
      const known = new Set(readSecrets(prepare, kind));
      for (const key of keys) if (!known.has(key)) prepare(cold.addSecret).run(`${kind}:${key.slice(0, 16)}`, key);
    }
  }

  function takeSession(line: SessionLine): { readonly n: number; readonly isNew: boolean } {
    const name = toName(line.id);
    const known = prepare(cold.sessionById).get(toNumber(name)) as KnownSession | undefined;
    if (known !== undefined && (known.name !== name || known.owner !== line.owner))
      throw refuse(`The session ${line.id} belongs to another owner here.`);
    if (known !== undefined) return { n: known.n, isNew: false };
    const { owner, kind, metadata, shows, createdAt, usedAt } = line;
    const n = addSession(toNumber(name), name, owner, kind, JSON.stringify(metadata), Date.parse(createdAt));
    prepare(cold.setUse).run(shows ? 1 : 0, Date.parse(usedAt), n);
    return { n, isNew: true };
  }

  /** False: it is there already. */
  function takeTurn(line: TurnLine): boolean {
    const session = prepare(cold.sessionById).get(toNumber(toName(line.session))) as KnownSession | undefined;
    if (session === undefined)
      throw refuse(`The turn ${line.id} belongs to the session ${line.session}, which does not stand before it.`);
    if (session.owner !== line.owner)
      throw refuse(`The turn ${line.id} has the owner '${line.owner}', and its session another owner.`);
    const known = prepare(cold.turnById).get(toNumber(line.id)) as KnownTurn | undefined;
    if (known === undefined) {
      addTurn(session.n, toTurnRow(line));
      return true;
    }
    if (known.key === line.id && known.session === session.n) return false;
    throw refuse(`There is another turn with the key of ${line.id} in this store.`);
  }

  return {
    importLines({ path }: { readonly path: string }): Imported {
      let [sessions, turns, oldest] = [0, 0, Number.MAX_SAFE_INTEGER];
      const tips: { readonly n: number; readonly tip: string }[] = [];
      const below: { readonly turn: string; readonly parent: string }[] = [];
      for (const text of readLines(path)) {
        const line = JSON.parse(text) as Line;
        if (line.type === "portico") takeKeys(line);
        else if (line.type === "session") {
          const { n, isNew } = takeSession(line);
          if (isNew && line.kind !== "hidden") sessions += 1;
          if (line.tip !== undefined) tips.push({ n, tip: line.tip });
        } else if (line.type === "turn" && takeTurn(line)) {
          turns += 1;
          oldest = Math.min(oldest, toNumber(line.id));
          if (line.parent !== undefined) below.push({ turn: line.id, parent: line.parent });
        }
      }
      for (const { turn, parent } of below) {
        if (prepare(cold.isBelow).get(toNumber(turn), toNumber(parent), parent) === undefined)
          throw refuse(`The turn ${turn} follows the turn ${parent}, which is not in its session.`);
      }
      for (const { n, tip } of tips) prepare(cold.giveTip).run(toNumber(tip), n, toNumber(tip), tip);
      // The retention looks at them as at any others.
      for (const name of ["aged", "shortened"]) if (notes.read(name) >= oldest) notes.write(name, oldest - 1);
      return { sessions, turns };
    },
  };
}

function toTurnRow(line: TurnLine): TurnRow {
  const { id, parent, depth, question, digest, remembers, model, createdAt, told, echo } = line;
  const texts: [string, string][] = [];
  const calls = line.answer.flatMap((item) => (item?.type === "tool-call" ? [item.callId] : []));
  const turn = toNumber(id);
  return {
    session: { id: 0, name: "", owner: "", kind: "named", created: 0, turn, leads: false, tip: null, learns: false },
    values: [
      turn,
      id,
      parent === undefined ? null : toNumber(parent),
      depth,
      question ?? null,
      digest ?? null,
      remembers ? 1 : 0,
      model,
      Date.parse(createdAt),
      JSON.stringify(line.input.map((item) => (item === null ? null : shorten(item, texts)))),
      JSON.stringify(line.answer),
      told === undefined ? "" : JSON.stringify(told),
      echo === undefined ? null : shortText(echo, texts),
    ],
    calls: digest === undefined ? [] : calls,
    texts,
  };
}

/** One line in memory at a time. */
function* readLines(path: string): Generator<string> {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(pieceBytes);
    let pieces: Buffer[] = [];
    for (let size = readSync(file, buffer); size > 0; size = readSync(file, buffer)) {
      let start = 0;
      for (let end = buffer.indexOf("\n"); end >= 0 && end < size; end = buffer.indexOf("\n", start)) {
        yield Buffer.concat([...pieces, buffer.subarray(start, end)]).toString();
        pieces = [];
        start = end + 1;
      }
      pieces.push(Buffer.from(buffer.subarray(start, size)));
    }
  } finally {
    closeSync(file);
  }
}

const pieceBytes = 256 * 1024;

const toName = (id: string): string => id.slice("conv_".length);

function refuse(what: string): GatewayError {
  return new GatewayError("invalid_value", `${what} Nothing was imported.`);
}

interface KnownSession {
  readonly n: number;
  readonly name: string;
  readonly owner: string;
}

interface KnownTurn {
  readonly key: string;
  readonly session: number;
}
