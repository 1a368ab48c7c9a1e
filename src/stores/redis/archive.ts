/** The operator's view of the Redis store: lists what it has, page by page. */
import type { Archive, Search, SessionSummary } from "../../core/store.ts";
import { toBeginning } from "../beginning.ts";
import { noSessionless, noSession } from "../refusals.ts";
import type { Access } from "./access.ts";
import { createExport, readForeignSeals } from "./export.ts";
import { walkSessionless } from "./sessionless.ts";
import { type Reply, toList, toText, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";

export function createArchive(access: Access, readPath: Search["readPath"]): Omit<Archive, "importRecords"> {
  const { key, send, read } = access;

  /** The ids of sessions under a hint: it is hashed with its owner, so each owner is tried. */
  async function findNamed(hint: string, owner: string | undefined): Promise<readonly string[]> {
    const owners = owner === undefined ? toTexts(await send("SMEMBERS", key("owners"))) : [owner];
    return access.withHints(async (hash, hintKey) => {
      const found = owners.map((each) => read(scripts.findSession, hash(each, hint), hintKey));
      return (await Promise.all(found)).flatMap((reply) => toText(toList(reply)[1]) ?? []);
    });
  }

  async function measureRest(tree: SessionSummary, rest: readonly string[]): Promise<SessionSummary> {
    let { turns, updatedAt } = tree;
    for await (const { ids, newest } of walkSessionless(access, everybody, rest)) {
      turns += ids.length;
      updatedAt = new Date(Math.max(+updatedAt, newest));
    }
    return { ...tree, turns, updatedAt };
  }

  /** Which sessions a list has is known by now: one that is continued meanwhile would be elsewhere in it. */
  async function describeAll(ids: readonly string[]): Promise<readonly SessionSummary[]> {
    const found: SessionSummary[] = [];
    for (let at = 0; at < ids.length;) {
      const page = toList(await read(scripts.describeSessions, ...ids.slice(at, at + maxDescribed)));
      for (const session of page) if (toList(session).length > 0) found.push(toSummary(session));
      at += page.length;
    }
    return found;
  }

  return {
    async listSessions({ owner, hint, after = "", limit }) {
      if (owner === everybody) return [];
      const named = hint === undefined ? [""] : ["named", ...(await findNamed(hint, owner))];
      return listInSteps(limit, [after, ""], async (room, place) => {
        const reply = await read(scripts.listSessions, owner ?? everybody, room, ...place, ...named);
        if (reply === null) throw noSession(after);
        const [page, score] = toList(reply);
        const ids = toTexts(page);
        const there = await describeAll(ids);
        // Some were deleted meanwhile: a page with fewer would be taken for the last.
        return [there, there.length < ids.length ? [...ids.slice(-1), String(score)] : []];
      });
    },
    async listSessionless({ owner, after, limit }) {
      if (owner === everybody) return [];
      return listInSteps(limit, after === undefined ? [] : [after], async (room, place) => {
        const reply = await read(scripts.listSessionless, owner ?? everybody, room, ...place);
        if (reply === null) throw noSessionless(after ?? "");
        const [page, next] = toList(reply);
        const trees: SessionSummary[] = [];
        for (const tree of toList(page)) trees.push(await measureRest(toSummary(tree), toTexts(toList(tree)[6])));
        return [trees, toTexts(next)];
      });
    },
    exportRecords: createExport(access, readPath),
    async sealKeys() {
      return [await access.readSeal(), ...(await readForeignSeals(access))];
    },
  };
}

/** What the scripts take for every owner. Nobody has this name, so a list of their sessions is empty. */
const everybody = "";

/** How many sessions one script describes at most. */
const maxDescribed = 100;

/** Reads some from a place on, and the next place; none: these were all. */
type Step = (
  room: string,
  place: readonly string[],
) => Promise<readonly [readonly SessionSummary[], readonly string[]]>;

/** Nobody else is answered while a script runs, so a list is read little by little. A step may repeat some of the last. */
async function listInSteps(limit: number, start: readonly string[], step: Step): Promise<readonly SessionSummary[]> {
  const found = new Map<string, SessionSummary>();
  let place = start;
  do {
    const [page, next] = await step(String(limit - found.size), place);
    for (const summary of page) found.set(summary.id, summary);
    place = next;
  } while (place.length > 0 && found.size < limit);
  return [...found.values()];
}

function toSummary(reply: Reply): SessionSummary {
  const [owner, created, updated, turns, id, input] = toList(reply);
  return {
    id: String(id),
    owner: String(owner),
    createdAt: new Date(Number(created)),
    updatedAt: new Date(Number(updated)),
    turns: Number(turns),
    beginning: toBeginning(toText(input)),
  };
}
