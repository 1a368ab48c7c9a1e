/** Finds a request's place in the Redis store. */
import type { Path } from "../../core/place/path.ts";
import type { Search, Session, StoredTurn, Twin } from "../../core/store.ts";
import { joinSteps, type Step } from "../paths.ts";
import { createSharing } from "../sharing.ts";
import type { Access } from "./access.ts";
import { type Reply, toList, toText } from "./script.ts";
import * as scripts from "./scripts.ts";
import { readStep, readTurn } from "./turn.ts";

export function createSearch(access: Access): Search {
  const { recent } = access;
  const shareTurn = createSharing<StoredTurn | undefined>();

  async function recall(turnId: string): Promise<Path | undefined> {
    if (!access.isFresh()) access.seeChanges(await access.send("GET", access.key("changes")));
    return recent.path(turnId);
  }

  /** Reads a path's turns from one on towards the root, and caches them as far as there is room. */
  async function readPart(turnId: string, [steps, bytes]: Bounds, mayCache = true) {
    const [changes, found] = toList(await access.read(scripts.readPath, turnId, steps, bytes));
    const part = toList(found).map(readStep);
    const isCached = access.seeChanges(changes) && mayCache;
    if (isCached) for (const { turn, size } of part) recent.add(turn, size);
    return { part, isCached };
  }

  /** Reads what is not cached of a path, a bounded part at a time. */
  async function readPath(turnId: string): Promise<Path> {
    const steps: Step[] = [];
    const changesBefore = access.changesSeen();
    let rest: string | undefined = turnId;
    let bounds = recent.get(turnId) === undefined ? endBounds : partBounds;
    let isWhole = true;
    while (rest !== undefined) {
      const known = recent.get(rest);
      if (known !== undefined) {
        steps.push(known);
        rest = known.turn.parent;
        continue;
      }
      const { part, isCached } = await readPart(rest, bounds, isWhole);
      // A change of the tree between two parts may affect the first: from then on, nothing is cached.
      isWhole = isCached;
      // And if the first turn of the next part is deleted, its children get another parent.
      const isCut = part.length === 0 && steps.length > 0;
      if (isCut && access.changesSeen() !== changesBefore) return readPath(turnId);
      for (const step of part) steps.push(step);
      rest = part.at(-1)?.turn.parent;
      bounds = partBounds;
    }
    return recent.path(turnId) ?? joinSteps(steps);
  }

  return {
    async findSession(owner, hint) {
      return access.withHints(async (hash, key) => {
        const [changes, id, session] = toList(await access.read(scripts.findSession, hash(owner, hint), key));
        access.seeChanges(changes);
        return toSession(toText(id) ?? "", session);
      });
    },
    async readSession(sessionId) {
      const fields = ["owner", "tip", "resends", "created", "metadata"];
      const found = toList(await access.send("HMGET", access.key(`s:${sessionId}`), ...fields));
      const session = toSession(sessionId, found);
      const [created, metadata] = found.slice(3);
      return (
        session && {
          ...session,
          createdAt: new Date(Number(created)),
          metadata: JSON.parse(toText(metadata) ?? "{}"),
        }
      );
    },
    findTurn: (owner, turnId) =>
      shareTurn(JSON.stringify([owner, turnId]), async () => {
        const [changes, turn] = toList(await access.read(scripts.findTurn, turnId, owner));
        access.seeChanges(changes);
        return turn === undefined ? undefined : readTurn(turn);
      }),
    async readPath(turnId) {
      return (await recall(turnId)) ?? readPath(turnId);
    },
    async recallPath(turnId) {
      const path = await recall(turnId);
      if (path !== undefined) return path;
      await readPart(turnId, endBounds);
      return recent.path(turnId);
    },
    async findTwins(sessionId, by, marks) {
      const kind = by === "digest" ? "d" : "x";
      // Most callers show what they received last, which is the first mark: the others are seldom worth a list.
      for (let start = 0, length = 8; start < marks.length; start += length, length = 2_000) {
        const wanted = marks.slice(start, start + length);
        const [index, found] = toList(await access.read(scripts.findTwins, sessionId, kind, ...wanted));
        const [newest, ...others] = toList(found).map(toTwin);
        if (newest !== undefined) return { index: start + Number(index), twins: [newest, ...others] };
      }
      return undefined;
    },
    async countThreads(sessionId) {
      return Math.min(Number(await access.send("HGET", access.key(`s:${sessionId}`), "ends")), 2);
    },
    async findKey(owner, key) {
      const stored = toText(await access.read(scripts.findKey, access.hashKey(owner, key)));
      if (stored === undefined) return undefined;
      const [fingerprint, turnId, created]: [string, string, number] = JSON.parse(stored);
      return { fingerprint, turnId, createdAt: new Date(created) };
    },
  };
}

/** How many turns of a path are read at once, and about how many bytes. */
type Bounds = readonly [steps: string, bytes: string];

/** Often only what other gateways have just added is not cached. */
const endBounds: Bounds = ["8", "100000"];
/** So that Redis can serve others. */
const partBounds: Bounds = ["500", "4000000"];

function toTwin(reply: Reply): Twin {
  const [id, hasChildren] = toList(reply);
  return { id: String(id), hasChildren: hasChildren === 1 };
}

function toSession(id: string, reply: Reply | undefined): Session | undefined {
  const [owner, tip, resends] = toList(reply);
  if (owner === undefined || owner === null) return undefined;
  return { id, owner: String(owner), tip: toText(tip), resends: toText(resends) !== undefined };
}
