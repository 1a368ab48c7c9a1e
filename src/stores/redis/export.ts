/** Exports the contents of the Redis store, page by page: the store continues while someone reads slowly. */
import { turnsOf } from "../../core/place/path.ts";
import type { Archive, ArchiveRecord, Search } from "../../core/store.ts";
import { noSession } from "../refusals.ts";
import type { Access } from "./access.ts";
import { listSessionless } from "./sessionless.ts";
import { type Reply, toList, toText, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";
import { readTurn } from "./turn.ts";

/** Arrival numbers bound what is read, and nothing is locked. */
export function createExport(access: Access, readPath: Search["readPath"]): Archive["exportRecords"] {
  const { key, send, read } = access;

  async function* exportAll(): AsyncGenerator<ArchiveRecord> {
    const lastSession = await readCount();
    yield await readStore();
    const sessions = new Set<string>();
    yield* exportSessions(lastSession, sessions);
    // Counted after the sessions were read, so that every exported tip is among the turns.
    const last = await readCount();
    for await (const record of exportTurns(last, (from) => read(scripts.exportTurns, from, String(last), maxBytes))) {
      const { session } = record.turn;
      if (session === undefined || sessions.has(session)) yield record;
    }
  }

  async function* exportSession(id: string): AsyncGenerator<ArchiveRecord> {
    if ((await send("EXISTS", key(`s:${id}`))) !== 1) throw noSession(id);
    yield await readStore();
    const session = await readSession(id);
    if (session !== undefined) yield session;
    const last = await readCount();
    yield* exportTurns(last, (from) => read(scripts.exportTurnsOf, id, from, String(last), maxBytes));
  }

  async function* exportOutside(ids: readonly string[]): AsyncGenerator<ArchiveRecord> {
    yield await readStore();
    for (const id of ids) {
      const found = toList(await send("HMGET", key(`t:${id}`), "m", "i", "o", "t", "p", "n"));
      if (found[0] !== null) yield { type: "turn", turn: readTurn([id, ...found]) };
    }
  }

  /** The ancestors of a turn outside of sessions, the turn and its descendants, parents first. */
  async function findAround(turnId: string): Promise<readonly string[]> {
    const ids = await listSessionless(access, "", turnId);
    if (ids.length === 0) return ids;
    const path = turnsOf(await readPath(turnId));
    const before = path.slice(path.findLastIndex(({ session }) => session !== undefined) + 1, -1);
    return [...before.map(({ id }) => id), ...ids];
  }

  /** How many sessions and turns have come so far. */
  async function readCount(): Promise<number> {
    return Number((await send("GET", key("count"))) ?? 0);
  }

  async function readStore(): Promise<ArchiveRecord> {
    const [hintKey, sealKey] = toList(await send("HMGET", key("secrets"), "hint", "secret:seal"));
    const own = toText(sealKey);
    const sealKeys = [...(own === undefined ? [] : [own]), ...(await readForeignSeals(access))];
    return { type: "store", hintKey: String(hintKey), sealKeys };
  }

  /** Puts their ids into `told`: Redis names all that exist throughout, in no order, and some of them twice. */
  async function* exportSessions(last: number, told: Set<string>): AsyncGenerator<ArchiveRecord> {
    let place = "0";
    do {
      const [next, page] = toList(await send("ZSCAN", key("active"), place, "COUNT", pageSize));
      const ids = toTexts(page).filter((_, index) => index % 2 === 0);
      for (const session of await Promise.all(ids.map((id) => readSession(id, last)))) {
        if (session === undefined || told.has(session.id)) continue;
        told.add(session.id);
        yield session;
      }
      place = String(next);
    } while (place !== "0");
  }

  /** Undefined if it is gone, or came after this arrival number. */
  async function readSession(id: string, last = Infinity): Promise<RecordOf<"session"> | undefined> {
    const found = toList(await send("HMGET", key(`s:${id}`), ...sessionFields));
    const [owner, hint, tip, resends, metadata, created, updated, number] = found;
    if (owner === null || Number(number) > last) return undefined;
    return {
      type: "session",
      id,
      owner: String(owner),
      hint: toText(hint),
      tip: toText(tip),
      resends: toText(resends) !== undefined,
      metadata: JSON.parse(toText(metadata) ?? "{}"),
      createdAt: new Date(Number(created)),
      updatedAt: new Date(Number(updated)),
    };
  }

  return async function* exportRecords(wanted) {
    if (wanted === undefined) return yield* exportAll();
    const outside = await findAround(wanted);
    yield* outside.length > 0 ? exportOutside(outside) : exportSession(wanted);
  };
}

/** `readFrom` reads a page of turns from an arrival number on, and where to continue: there again if none is left. */
async function* exportTurns(
  last: number,
  readFrom: (number: string) => Promise<Reply>,
): AsyncGenerator<RecordOf<"turn">> {
  for (let number = 0; number <= last;) {
    const [next, page] = toList(await readFrom(String(number)));
    for (const turn of toList(page)) yield { type: "turn", turn: readTurn(turn) };
    if (Number(next) === number) return;
    number = Number(next);
  }
}

/** The secrets that came with archives, and only open what was sealed elsewhere. */
export async function readForeignSeals({ send, key }: Access): Promise<readonly string[]> {
  const names = toTexts(await send("HKEYS", key("secrets"))).filter((name) => name.startsWith(foreignSeal));
  return names.map((name) => name.slice(foreignSeal.length)).toSorted();
}

const foreignSeal = "foreign_seal:";

const pageSize = "100";
const maxBytes = "4000000";
const sessionFields = ["owner", "hint", "tip", "resends", "metadata", "created", "updated", "number"];

type RecordOf<Type extends ArchiveRecord["type"]> = Extract<ArchiveRecord, { readonly type: Type }>;
