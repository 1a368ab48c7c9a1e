/** Takes in an archive whose lines are valid, in one transaction: all of it, or nothing. What is there stays as it is. */
import { GatewayError } from "../core/errors.ts";
import type { Commit, Imported } from "../core/store.ts";
import type { HeadLine, Line, SessionLine, TurnLine } from "./archive.ts";
import { cold } from "./cold.ts";
import { createNotes } from "./deletions.ts";
import { readLines } from "./lines.ts";
import type { Prepare } from "./prepared.ts";
import { toRow, type TurnRow } from "./rows.ts";
import { toNumber } from "./schema.ts";
import { readSecrets } from "./secrets.ts";

interface Hands {
  addSession(id: number, name: string, owner: string, kind: string, metadata: string, created: number): number;
  addTurn(session: number, row: TurnRow): void;
}

export function createImport(prepare: Prepare, { addSession, addTurn }: Hands) {
  const notes = createNotes(prepare);
  const findSession = (name: string) => prepare(cold.sessionById).get(toNumber(name)) as KnownSession | undefined;
  const findTurn = (key: string) => prepare(cold.turnById).get(toNumber(key)) as KnownTurn | undefined;

  /** A store without hinted sessions takes over the archive's key; any other tries that after its own. */
  function takeKeys({ hintKeys, sealKeys }: HeadLine): void {
    const isFree = prepare(cold.anyHinted).get() === undefined;
    if (isFree) prepare(cold.adoptSecret).run(hintKeys[0] ?? "", "hints");
    for (const [kind, keys] of Object.entries({ hints: hintKeys, seals: sealKeys })) {
      const known = new Set(readSecrets(prepare, kind));
      for (const key of keys) if (!known.has(key)) prepare(cold.addSecret).run(`${kind}:${key.slice(0, 16)}`, key);
    }
  }

  /** Its number if it is new. */
  function takeSession({ id, owner, kind, metadata, shows, createdAt, usedAt }: SessionLine): number | undefined {
    const name = toName(id);
    const known = findSession(name);
    if (known === undefined) {
      const n = addSession(toNumber(name), name, owner, kind, JSON.stringify(metadata), Date.parse(createdAt));
      prepare(cold.setUse).run(shows ? 1 : 0, Date.parse(usedAt), n);
      return n;
    }
    if (known.name === name && known.owner === owner) return undefined;
    throw refuse(`The session ${id} belongs to another owner here.`);
  }

  /** False: it is there already. */
  function takeTurn(line: TurnLine): boolean {
    const { id, owner, parent } = line;
    const session = findSession(toName(line.session));
    if (session === undefined) throw refuse(`The turn ${id} belongs to no session that stands before it.`);
    if (session.owner !== owner) throw refuse(`The turn ${id} has the owner '${owner}', and its session another owner.`);
    const known = findTurn(id);
    if (known?.key === id && known.session === session.n) return false;
    if (known !== undefined) throw refuse(`There is another turn with the key of ${id} in this store.`);
    const above = parent === undefined ? undefined : findTurn(parent);
    if (parent !== undefined && (above?.key !== parent || above.session !== session.n))
      throw refuse(`The turn ${id} follows the turn ${parent}, which does not stand before it in its session.`);
    addTurn(session.n, toTurnRow(line, above));
    return true;
  }

  return {
    importLines({ path }: { readonly path: string }): Imported {
      let [sessions, turns, oldest] = [0, 0, Number.MAX_SAFE_INTEGER];
      const tips: (readonly [session: string, tip: string])[] = [];
      for (const text of readLines(path)) {
        if (text === "") continue;
        const line = JSON.parse(text) as Line;
        if (line.type === "portico") takeKeys(line);
        else if (line.type === "session") {
          if (takeSession(line) !== undefined && line.kind !== "hidden") sessions += 1;
          if (line.tip !== undefined) tips.push([line.id, line.tip]);
        } else if (line.type === "turn" && takeTurn(line)) {
          turns += 1;
          oldest = Math.min(oldest, toNumber(line.id));
        }
      }
      for (const [id, tip] of tips) prepare(cold.giveTip).run(toNumber(tip), toNumber(toName(id)), toNumber(tip), tip);
      // The retention looks at them as at any others.
      for (const name of ["aged", "shortened"]) if (notes.read(name) >= oldest) notes.write(name, oldest - 1);
      return { sessions, turns };
    },
  };
}

/** As if it was said here: every field was checked. */
function toTurnRow(line: TurnLine, above: KnownTurn | undefined): TurnRow {
  const { id: key, owner, session, digest, question = "", createdAt, told, answer: items } = line;
  const parent = above && { turn: above.n, depth: above.depth, digest: "", remembers: false, hasFollowers: true };
  const place = { key, owner, session, parent, marks: { question, digest: digest ?? "" }, isLoose: digest === undefined };
  const row = toRow({
    ...line,
    ...place,
    ...{ createdAt: Date.parse(createdAt), answer: { ...told, items }, leads: false, tip: undefined, learns: false },
  } as unknown as Commit);
  return told === undefined ? { ...row, values: row.values.with(11, "") } : row;
}

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
  readonly n: number;
  readonly key: string;
  readonly session: number;
  readonly depth: number;
}
