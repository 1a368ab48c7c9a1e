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
  async function findNamed(hint: string, owner: string): Promise<readonly string[]> {
    const owners = owner === "" ? toTexts(await send("SMEMBERS", key("owners"))) : [owner];
    return access.withHints(async (hash, hintKey) => {
      const found = owners.map((each) => read(scripts.findSession, hash(each, hint), hintKey));
      return (await Promise.all(found)).flatMap((reply) => toText(toList(reply)[1]) ?? []);
    });
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
      const found: SessionSummary[] = [];
      let place: readonly string[] = after === undefined ? [] : [after];
      do {
        const reply = await read(scripts.listSessionless, owner, String(limit - found.length), ...place);
        if (reply === null) throw noSessionless(after ?? "");
        const [page, next] = toList(reply);
        for (const tree of toList(page)) found.push(await measureRest(toSummary(tree), toTexts(toList(tree)[6])));
        place = toTexts(next);
      } while (place.length > 0 && found.length < limit);
      return found;
    },
    exportRecords: createExport(access, readPath),
    async sealKeys() {
      return [await access.readSeal(), ...(await readForeignSeals(access))];
    },
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
