/** Imports an archive into the Redis store: staged first, then a bounded part at a time; a failed import is undone. */
import type { GatewayError } from "../../core/errors.ts";
import type { Archive, ArchiveRecord } from "../../core/store.ts";
import { misplacedTurn, mixedOwners, otherKey, unavailable } from "../refusals.ts";
import { type StagedRow, type Staging, createStaging } from "../staging.ts";
import type { Access } from "./access.ts";
import { removeMarkedTurns } from "./removal.ts";
import { inParts, toList, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";
import { type TurnParts, toParts } from "./turn.ts";

export function createImport(access: Access): Archive["importRecords"] {
  async function importStaged(staging: Staging, done: Done): Promise<void> {
    // What is being deleted would otherwise count as existing.
    while ((await removeMarkedTurns(access, "", maxRemoved)) !== undefined);
    let isSameKey = false;
    let sealKeys: Row = [];
    for (const { type, rows } of toBatches(staging.read())) {
      if (type === "store") {
        const [hintKey = "", ...others] = rows[0] ?? [];
        isSameKey = await takeKey(hintKey, done);
        sealKeys = others;
      } else if (type === "session") await addSessions(rows, isSameKey, done);
      else await addTurns(rows, done);
    }
    const [id, tip] = await setTips(done.newTips);
    if (id !== undefined) throw mixedOwners(`the tip of the session ${id} is the turn ${tip}`);
    await setTips(done.otherTips);
    // Last, because then they need not be undone: a session that has its hint back has what is its own.
    for (const hints of inParts(done.hints, maxSmall)) {
      done.hintsTaken += Number(await access.write(scripts.setHints, hints.flat()));
    }
    await access.write(scripts.addSeals, sealKeys);
  }

  /** Returns the first session whose tip would be another owner's turn, and that turn. */
  async function setTips(tips: readonly Row[]): Promise<Row> {
    const strays: string[] = [];
    for (const part of inParts(tips, maxSmall)) {
      strays.push(...toTexts(await access.write(scripts.setTips, part.flat())));
    }
    return strays;
  }

  async function takeKey(key: string, done: Done): Promise<boolean> {
    const [isSame, before] = toList(await access.write(scripts.takeKey, [key]));
    done.keyBefore = String(before);
    return isSame === 1;
  }

  async function addSessions(rows: readonly Row[], isSameKey: boolean, done: Done): Promise<void> {
    const args = [isSameKey ? "1" : "", ...rows.flat()];
    const [added, isOtherKey] = toList(await access.write(scripts.addSessions, args));
    const isNew = new Set(toTexts(added));
    done.sessions.push(...isNew);
    for (const [id = "", owner = "", hint = "", tip = ""] of rows) {
      done.sessionsRead.add(id);
      // An existing session may be from an import that died before this step; one with a tip keeps it.
      if (tip !== "") (isNew.has(id) ? done.newTips : done.otherTips).push([id, tip]);
      if (hint !== "" && isSameKey) done.hints.push([id, owner, hint]);
    }
    if (isOtherKey === 1) throw otherKey();
  }

  async function addTurns(rows: readonly Row[], done: Done): Promise<void> {
    const [added, misplaced] = toList(await access.write(scripts.addTurns, rows.flat()));
    for (const id of toTexts(added)) done.turns.push(id);
    for (const each of toList(misplaced)) {
      const [turnId, named, name, exists] = toList(each);
      const read = named === "session" ? done.sessionsRead : done.turnsRead;
      // Others use the store meanwhile: of what was deleted since it was imported, nothing more is imported.
      if (exists === 1 || !read.has(String(name))) {
        throw misplacedTurn(String(turnId), named === "session" ? named : "parent", String(name), exists === 1);
      }
      done.turnsRead.add(String(turnId));
    }
    // Only now: a turn that is later among these does not count as before.
    for (const [id = ""] of rows) done.turnsRead.add(id);
  }

  /** Newest first, because nothing follows them. */
  async function undo({ sessions, turns }: Done, keyBefore: string): Promise<void> {
    for (const ids of inParts(turns.toReversed(), maxRemoved)) await access.write(scripts.removeBelow, ["", ...ids]);
    for (const ids of inParts(sessions, maxRemoved)) await access.write(scripts.markSessions, ids);
    await access.write(scripts.takeKey, [keyBefore]);
    while ((await removeMarkedTurns(access, "", maxRemoved)) !== undefined);
  }

  return async (records) => {
    // Fails before anything is read: the archive may arrive slowly.
    await access.send("PING");
    const staging = createStaging(toStaged);
    const done = createDone();
    try {
      for await (const record of records) staging.add(record);
      await importStaged(staging, done);
      access.noteChange(await access.send("INCR", access.key("changes")));
      return { sessions: done.sessions.length, turns: done.turns.length, hintsTaken: done.hintsTaken };
    } catch (thrown) {
      // The key comes first: without it, nothing was imported.
      if (done.keyBefore !== undefined) {
        await undo(done, done.keyBefore).catch((second) => {
          throw partlyImported(second);
        });
      }
      throw thrown;
    } finally {
      staging.close();
    }
  };
}

function partlyImported(cause: unknown): GatewayError {
  const remedy = "Import the archive again: what is already there stays as it is.";
  return unavailable(`Redis disconnected when part of the archive had been imported. ${remedy}`, cause);
}

type Done = ReturnType<typeof createDone>;

/** What was imported so far. */
const createDone = () => ({
  sessions: [] as string[],
  turns: [] as string[],
  /** The ids of all read from the archive so far, whether existing, imported or left out. */
  sessionsRead: new Set<string>(),
  turnsRead: new Set<string>(),
  /** Sessions and their tips; those of sessions that existed are not undone, and so are set last. */
  newTips: [] as Row[],
  otherTips: [] as Row[],
  /** Sessions, owners and hints: each has its hint already, or gets it if it is free. */
  hints: [] as Row[],
  hintsTaken: 0,
  keyBefore: undefined as string | undefined,
});

const maxRemoved = 200;
/** How many tips or hints one script sets. */
const maxSmall = 1_000;

type Row = readonly string[];

interface Batch {
  readonly type: ArchiveRecord["type"];
  readonly rows: readonly Row[];
}

const maxBatchRows = 100;
const maxBatchCharacters = 1_000_000;

/** Adjacent records of one type go together, as many as Redis takes without a long pause. */
function* toBatches(staged: Iterable<StagedRow>): Generator<Batch> {
  let rows: Row[] = [];
  let characters = 0;
  let current: Batch["type"] = "store";
  for (const { type, record } of staged) {
    if (rows.length > 0 && (type !== current || rows.length >= maxBatchRows || characters > maxBatchCharacters)) {
      yield { type: current, rows };
      rows = [];
      characters = 0;
    }
    current = type;
    rows.push(JSON.parse(record));
    characters += record.length;
  }
  if (rows.length > 0) yield { type: current, rows };
}

function toStaged(record: ArchiveRecord): TurnParts | readonly string[] {
  if (record.type === "store") return [record.hintKey, ...(record.sealKeys ?? [])];
  if (record.type === "turn") return toParts(record.turn);
  const { id, owner, hint = "", tip = "", resends, metadata, createdAt, updatedAt } = record;
  const times = [String(createdAt.getTime()), String(updatedAt.getTime())];
  return [id, owner, hint, tip, resends ? "1" : "", JSON.stringify(metadata), ...times];
}
