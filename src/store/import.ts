/** Takes in an archive, in one transaction: all of it or, if a line is wrong, nothing. What is there stays as it is. */
import type { GatewayError } from "../core/errors.ts";
import type { Commit, Imported } from "../core/store.ts";
import { type LineOf, readArchive, wrongField, wrongLine } from "./archive.ts";
import { invalid } from "./checks.ts";
import { cold, type Tables, toNumber } from "./cold.ts";
import { createNotes } from "./deletions.ts";
import { type NewSession, toRow, type TurnRow } from "./rows.ts";
import { readSecrets, type SecretLists } from "./secrets.ts";
import { at } from "./tables.ts";

interface Hands {
  addSession(session: NewSession, metadata: string): Promise<number>;
  addTurn(row: TurnRow): Promise<void>;
}

export function createImport({ one, run, all }: Tables, { addSession, addTurn }: Hands) {
  const notes = createNotes({ one, run });
  const findTurn = (key: string) => one<KnownTurn>(cold.turnById, toNumber(key));

  /** They are tried after the store's own. */
  async function takeKeys({ hintKeys, sealKeys }: LineOf<"portico">): Promise<void> {
    const known = await readSecrets({ all });
    for (const [kind, keys] of Object.entries({ hints: hintKeys, seals: sealKeys } satisfies SecretLists))
      for (const key of keys)
        if (!known[kind as keyof SecretLists].includes(key))
          await run(cold.addSecret, `${kind}:${key.slice(0, 16)}`, key);
  }

  /** False: it is there already. */
  async function takeSession(at: number, line: LineOf<"session">): Promise<boolean> {
    const { id, owner, kind, metadata, shows, createdAt, usedAt } = line;
    const name = toName(id);
    const known = await one<KnownSession>(cold.sessionById, toNumber(name));
    if (known?.name === name && known.owner === owner) return false;
    if (known?.name === name) throw wrong(at, "owner", `the session ${id} belongs to another owner here`);
    if (known !== undefined) throw wrong(at, "id", `the session conv_${known.name} has the same first digits`);
    await run(cold.unmarkErased, toNumber(name));
    const n = await addSession([toNumber(name), name, owner, kind, Date.parse(createdAt)], JSON.stringify(metadata));
    await run(cold.setUse, shows ? 1 : 0, Date.parse(usedAt), n);
    return true;
  }

  /** False: it is there already. */
  async function takeTurn(at: number, line: LineOf<"turn">, session: LineOf<"session"> | undefined): Promise<boolean> {
    const { id, parent } = line;
    if (session === undefined) throw wrongLine(at, "is a turn without a session before it");
    const name = toName(session.id);
    const known = await findTurn(id);
    if (known !== undefined && known.key !== id)
      throw wrong(at, "id", `the turn ${known.key} has the same first digits`);
    if (known !== undefined && known.name !== name) throw wrong(at, "id", "another session has this turn");
    if (known !== undefined) return false;
    const above = parent === undefined ? undefined : await findTurn(parent);
    if (parent !== undefined && (above?.key !== parent || above.name !== name))
      throw wrong(at, "parent", `the turn ${parent} does not stand before this one in its session`);
    await addTurn(toTurnRow(line, session, above));
    return true;
  }

  /** The session gets no tip if the turn was deleted during the export. */
  async function giveTip(at: number, name: string, tip: string): Promise<void> {
    const known = await findTurn(tip);
    if (known?.key === tip && known.name !== name) throw wrong(at, "tip", `the turn ${tip} is another session's`);
    await run(cold.giveTip, toNumber(tip), toNumber(name), toNumber(tip), tip);
  }

  return {
    async importLines({ path }: { readonly path: string }): Promise<Imported> {
      let [sessions, turns, oldest] = [0, 0, Number.MAX_SAFE_INTEGER];
      let session: LineOf<"session"> | undefined;
      const tips: (readonly [at: number, session: string, tip: string])[] = [];
      for (const [at, line] of readArchive(path)) {
        if (line.type === "portico") await takeKeys(line);
        else if (line.type === "session") {
          session = line;
          if ((await takeSession(at, line)) && line.kind !== "hidden") sessions += 1;
          if (line.tip !== undefined) tips.push([at, line.id, line.tip]);
        } else if (line.type === "turn" && (await takeTurn(at, line, session))) {
          turns += 1;
          oldest = Math.min(oldest, toNumber(line.id));
        }
      }
      for (const [at, id, tip] of tips) await giveTip(at, toName(id), tip);
      // The retention looks at them as at any others.
      for (const name of ["aged", "shortened"])
        if ((await notes.read(name)) >= oldest) await notes.write(name, oldest - 1);
      return { sessions, turns };
    },
  };
}

function wrong(at: number, field: string, why: string): GatewayError {
  return wrongField(at, { ...invalid, path: `.${field}` }, `, because ${why}`);
}

/** As if it was said here: every field was checked. */
function toTurnRow(line: LineOf<"turn">, session: LineOf<"session">, above: KnownTurn | undefined): TurnRow {
  const { id: key, digest, question = "", told, answer: items, instructions, tools: offersTools, person } = line;
  const commit = {
    ...line,
    key,
    owner: session.owner,
    session: session.id,
    parent: above && { turn: above.n, depth: above.depth },
    createdAt: Date.parse(line.createdAt),
    marks: { question, digest: digest ?? "" },
    isLoose: digest === undefined,
    answer: { ...told, items },
    leads: false,
    program: offersTools === undefined ? undefined : { instructions, offersTools },
  } as unknown as Commit;
  const { values, ...row } = toRow(commit, nameless);
  const own = values.with(at("person"), person === undefined ? null : toNumber(person));
  return { ...row, values: told === undefined ? own.with(at("told"), "") : own };
}

/** An archive has neither idempotency keys nor the names of users. */
const nameless = { nameKey: (_owner: string, key: string) => key, personOf: () => 0 };

const toName = (id: string): string => id.slice("conv_".length);

interface KnownSession {
  readonly name: string;
  readonly owner: string;
}

interface KnownTurn {
  readonly n: number;
  readonly key: string;
  readonly depth: number;
  /** Its session's. */
  readonly name: string;
}
