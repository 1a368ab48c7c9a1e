/** The operator's view of the Redis store: lists its sessions, and writes out what it holds page by page. */
import type { Archive, ArchiveRecord, SessionSummary } from "../../core/store.ts";
import { toBeginning } from "../beginning.ts";
import { hasNoSession } from "../refusals.ts";
import type { Ground } from "./ground.ts";
import { type Reply, type Script, toList, toText, toTexts } from "./script.ts";
import { scripts } from "./scripts.ts";
import { readListedTurn } from "./turn.ts";

export function createArchive(ground: Ground): Pick<Archive, "listSessions" | "exportRecords" | "foreignSeals"> {
  const { key, send, read } = ground;

  /** What is read is bounded by numbers of arrival, and nothing is held: the store goes on while someone reads slowly. */
  async function* exportRecords(wanted?: string): AsyncGenerator<ArchiveRecord> {
    const lastSession = String((await send("GET", key("count"))) ?? 0);
    if (wanted !== undefined && (await send("EXISTS", key(`s:${wanted}`))) === 0) throw hasNoSession(wanted);
    const [hintKey, sealKey] = toList(await send("HMGET", key("secrets"), "hint", "secret:seal"));
    const own = toText(sealKey);
    const sealKeys = [...(own === undefined ? [] : [own]), ...(await readForeignSeals())];
    yield { type: "store", hintKey: String(hintKey), sealKeys };
    if (wanted === undefined) yield* exportSessions(Number(lastSession));
    else yield* await exportSession(wanted);
    // Read after the sessions, so that every tip that was told is among the turns.
    const last = String((await send("GET", key("count"))) ?? 0);
    const bounds = wanted === undefined ? [last, lastSession, maxBytes] : [last, maxBytes];
    const script = wanted === undefined ? scripts.exportTurns : scripts.exportTurnsOf;
    yield* exportTurns(script, wanted === undefined ? [] : [wanted], bounds);
  }

  async function readForeignSeals(): Promise<readonly string[]> {
    const names = toTexts(await send("HKEYS", key("secrets"))).filter((name) => name.startsWith(foreignSeal));
    return names.map((name) => name.slice(foreignSeal.length)).toSorted();
  }

  /** Whoever is touched meanwhile comes later, and may come again. */
  async function* exportSessions(last: number): AsyncGenerator<ArchiveRecord> {
    const told = new Set<string>();
    for (let from = "-inf"; ;) {
      const [score, page] = toList(await read(scripts.exportSessions, from, pageSize));
      for (const session of toList(page)) {
        const [number, id] = toList(session).slice(-2);
        if (Number(number) > last || told.has(String(id))) continue;
        told.add(String(id));
        yield toRecord(session);
      }
      if (toList(page).length < Number(pageSize)) return;
      from = `(${String(score)}`;
    }
  }

  async function exportSession(id: string): Promise<readonly ArchiveRecord[]> {
    const found = toList(await send("HMGET", key(`s:${id}`), ...sessionFields));
    return found[0] === null ? [] : [toRecord([...found, id])];
  }

  async function* exportTurns(
    script: Script,
    before: readonly string[],
    bounds: readonly string[],
  ): AsyncGenerator<ArchiveRecord> {
    const last = Number(bounds[0]);
    for (let number = 0; number <= last;) {
      const [next, page] = toList(await read(script, ...before, String(number), ...bounds));
      for (const turn of toList(page)) yield { type: "turn", turn: readListedTurn(turn) };
      if (Number(next) === number) return;
      number = Number(next);
    }
  }

  return {
    async listSessions({ owner = "", after = "", limit }) {
      const page = await read(scripts.listSessions, owner, after, String(limit));
      if (page === null) throw hasNoSession(after);
      return toList(page).map(toSummary);
    },
    exportRecords,
    async foreignSeals() {
      return (await readForeignSeals()).map((secret) => Buffer.from(secret, "base64url"));
    },
  };
}

const foreignSeal = "foreign_seal:";

const pageSize = "100";
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
