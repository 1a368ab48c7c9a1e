/** The operator's view of the Redis store: lists its sessions, and exports its contents page by page. */
import { turnsOf } from "../../core/place/path.ts";
import type { Archive, ArchiveRecord, Search, SessionSummary } from "../../core/store.ts";
import { toBeginning } from "../beginning.ts";
import { noSessionless, noSession } from "../refusals.ts";
import type { Access } from "./access.ts";
import { listSessionless, walkSessionless } from "./sessionless.ts";
import { type Reply, toList, toText, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";
import { readTurn } from "./turn.ts";

export function createArchive(access: Access, readPath: Search["readPath"]): Omit<Archive, "importRecords"> {
  const { key, send, read } = access;

  /** Arrival numbers bound what is read, and nothing is locked: the store continues while someone reads slowly. */
  async function* exportRecords(wanted?: string): AsyncGenerator<ArchiveRecord> {
    const lastSession = String((await send("GET", key("count"))) ?? 0);
    const outside = wanted === undefined ? [] : await findAround(wanted);
    const isKnown = wanted === undefined || outside.length > 0 || (await send("EXISTS", key(`s:${wanted}`))) === 1;
    if (!isKnown) throw noSession(wanted);
    const [hintKey, sealKey] = toList(await send("HMGET", key("secrets"), "hint", "secret:seal"));
    const own = toText(sealKey);
    const sealKeys = [...(own === undefined ? [] : [own]), ...(await readForeignSeals())];
    yield { type: "store", hintKey: String(hintKey), sealKeys };
    if (outside.length > 0) return yield* exportOutside(outside);
    if (wanted === undefined) yield* exportSessions(Number(lastSession));
    else yield* await exportSession(wanted);
    // Read after the sessions, so that every exported tip is among the turns.
    const last = String((await send("GET", key("count"))) ?? 0);
    yield* exportTurns(last, lastSession, wanted);
  }

  /** The ancestors of a turn outside of sessions, the turn and its descendants, parents first. */
  async function findAround(turnId: string): Promise<readonly string[]> {
    const ids = await listSessionless(access, "", turnId);
    if (ids.length === 0) return ids;
    const path = turnsOf(await readPath(turnId));
    const before = path.slice(path.findLastIndex(({ session }) => session !== undefined) + 1, -1);
    return [...before.map(({ id }) => id), ...ids];
  }

  async function readForeignSeals(): Promise<readonly string[]> {
    const names = toTexts(await send("HKEYS", key("secrets"))).filter((name) => name.startsWith(foreignSeal));
    return names.map((name) => name.slice(foreignSeal.length)).toSorted();
  }

  async function* exportSessions(last: number): AsyncGenerator<ArchiveRecord> {
    const told = new Set<string>();
    let place = "0";
    do {
      const [next, page] = toList(await read(scripts.exportSessions, place, pageSize));
      for (const session of toList(page)) {
        const [number, id] = toList(session).slice(-2);
        if (Number(number) > last || told.has(String(id))) continue;
        told.add(String(id));
        yield toRecord(session);
      }
      place = String(next);
    } while (place !== "0");
  }

  async function exportSession(id: string): Promise<readonly ArchiveRecord[]> {
    const found = toList(await send("HMGET", key(`s:${id}`), ...sessionFields));
    return found[0] === null ? [] : [toRecord([...found, id])];
  }

  async function* exportOutside(ids: readonly string[]): AsyncGenerator<ArchiveRecord> {
    for (const id of ids) {
      const found = toList(await send("HMGET", key(`t:${id}`), "m", "i", "o", "t", "p", "n"));
      if (found[0] !== null) yield { type: "turn", turn: readTurn([id, ...found]) };
    }
  }

  async function* exportTurns(last: string, lastSession: string, wanted?: string): AsyncGenerator<ArchiveRecord> {
    for (let number = 0; number <= Number(last);) {
      const found =
        wanted === undefined
          ? await read(scripts.exportTurns, String(number), last, lastSession, maxBytes)
          : await read(scripts.exportTurnsOf, wanted, String(number), last, maxBytes);
      const [next, page] = toList(found);
      for (const turn of toList(page)) yield { type: "turn", turn: readTurn(turn) };
      if (Number(next) === number) return;
      number = Number(next);
    }
  }

  /** The ids of sessions under a hint: it is hashed with its owner, so each owner is tried. */
  async function findNamed(hint: string, owner: string): Promise<readonly string[]> {
    const owners = owner === "" ? toTexts(await send("SMEMBERS", key("owners"))) : [owner];
    return access.withHints(async (hash, hintKey) => {
      const found = owners.map((each) => read(scripts.findSession, hash(each, hint), hintKey));
      return (await Promise.all(found)).flatMap((reply) => toText(toList(reply)[1]) ?? []);
    });
  }

  async function measureSessionless(
    roots: readonly string[],
    owner: string,
    limit: number,
  ): Promise<readonly SessionSummary[]> {
    const found: SessionSummary[] = [];
    for (let rest = roots; rest.length > 0 && found.length < limit;) {
      const wanted = String(limit - found.length);
      const [looked, page] = toList(await read(scripts.measureSessionless, owner, wanted, ...rest));
      for (const tree of toList(page)) found.push(await measureRest(toSummary(tree), toTexts(toList(tree)[6])));
      rest = rest.slice(Number(looked));
    }
    return found;
  }

  async function measureRest(tree: SessionSummary, rest: readonly string[]): Promise<SessionSummary> {
    let { turns, updatedAt } = tree;
    for await (const { ids, newest } of walkSessionless(access, "", rest)) {
      turns += ids.length;
      updatedAt = new Date(Math.max(+updatedAt, newest));
    }
    return { ...tree, turns, updatedAt };
  }

  return {
    async listSessions({ owner = "", hint, after = "", limit }) {
      const named = hint === undefined ? [""] : ["named", ...(await findNamed(hint, owner))];
      const page = await read(scripts.listSessions, owner, after, String(limit), ...named);
      if (page === null) throw noSession(after);
      return toList(page).map(toSummary);
    },
    async listSessionless({ owner = "", after, limit }) {
      const rank = after === undefined ? -1 : await send("ZREVRANK", key("loose"), after);
      if (rank === null) throw noSessionless(after ?? "");
      const found: SessionSummary[] = [];
      for (let start = Number(rank) + 1; found.length < limit; start += sessionlessPage) {
        const range = [start, start + sessionlessPage - 1].map(String);
        const roots = toTexts(await send("ZREVRANGE", key("loose"), ...range));
        if (roots.length === 0) break;
        found.push(...(await measureSessionless(roots, owner, limit - found.length)));
      }
      return found;
    },
    exportRecords,
    async sealKeys() {
      return [await access.readSeal(), ...(await readForeignSeals())];
    },
  };
}

const foreignSeal = "foreign_seal:";

const pageSize = "100";
const sessionlessPage = 100;
const maxBytes = "4000000";
const sessionFields = ["owner", "hint", "tip", "resends", "metadata", "created", "updated", "number"];

function toRecord(reply: Reply): ArchiveRecord {
  const [owner, hint, tip, resends, metadata, created, updated, , id] = toList(reply);
  return {
    type: "session",
    id: String(id),
    owner: String(owner),
    hint: toText(hint),
    tip: toText(tip),
    resends: toText(resends) !== undefined,
    metadata: JSON.parse(toText(metadata) ?? "{}"),
    createdAt: new Date(Number(created)),
    updatedAt: new Date(Number(updated)),
  };
}

function toSummary(reply: Reply): SessionSummary {
  const [owner, created, updated, turns, id, words] = toList(reply);
  return {
    id: String(id),
    owner: String(owner),
    createdAt: new Date(Number(created)),
    updatedAt: new Date(Number(updated)),
    turns: Number(turns),
    beginning: toBeginning(toText(words)),
  };
}
