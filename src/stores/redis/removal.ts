/** Deletes turns and sessions from the Redis store: for good, and little by little, so that Redis can serve others. */
import { shownSuffix } from "../../core/conversation/address.ts";
import type { TurnWriter, PruneRules, Pruned } from "../../core/store.ts";
import { notAllGone } from "../refusals.ts";
import type { Access } from "./access.ts";
import { listSessionless, walkSessionless } from "./sessionless.ts";
import { type Script, inParts, toList, toTexts } from "./script.ts";
import * as scripts from "./scripts.ts";

/**
 * What a caller deletes is invisible at once, and gone when the promise resolves; the error says if it is only the first.
 * Only a turn that very many follow is found until the last of them has moved.
 */
export function createDeletion(access: Access): Pick<TurnWriter, "deleteTurn" | "deleteBelow" | "deleteSession"> {
  return {
    async deleteTurn(owner, turnId) {
      const args = [owner, turnId, shownSuffix, String(maxRemovedTurns)];
      for (;;) {
        const [changes, changed, isGone] = toList(await access.write(scripts.deleteTurn, args));
        if (changes === undefined) return false;
        access.noteChange(changes, toTexts(changed));
        if (isGone === 1) return true;
      }
    },
    async deleteBelow(owner, turnId) {
      const below = (await listSessionless(access, owner, turnId)).slice(1).toReversed();
      for (const going of inParts(below, maxRemovedTurns)) {
        const [changes, changed] = toList(await access.write(scripts.removeBelow, [turnId, ...going]));
        access.noteChange(changes, toTexts(changed));
      }
      return below.length;
    },
    async deleteSession(owner, sessionId) {
      const changes = await access.write(scripts.markSession, [owner, sessionId]);
      if (changes === null) return false;
      access.noteChange(changes);
      try {
        while ((await removeMarkedTurns(access, sessionId, maxRemovedTurns)) === maxRemovedTurns);
      } catch (thrown) {
        throw notAllGone(thrown);
      }
      return true;
    },
  };
}

/** How many turns one script deletes: a pause of some milliseconds. */
const maxRemovedTurns = 200;

/**
 * Deletes at most `limit` turns of a session marked as deleted, or of any such. Returns how many: fewer if the session
 * is gone as well, and undefined if none is marked.
 */
export async function removeMarkedTurns(access: Access, sessionId: string, limit: number): Promise<number | undefined> {
  const [turns, changes] = toList(await access.write(scripts.removeMarkedTurns, [sessionId, String(limit)]));
  if (turns === undefined) return undefined;
  access.noteChange(changes);
  return Number(turns);
}

/** Deletes what the rules no longer keep: a bounded number at a time, the oldest first. */
export function createPrune(access: Access): (rules: PruneRules) => Promise<Pruned> {
  /** Old roots with new descendants stay: the next call continues after those examined. */
  let skippedRoots = 0;
  let removing: Removing | undefined;

  async function removeMarked(spent: Spent): Promise<void> {
    while (spent.budget > 0) {
      const limit = Math.ceil(spent.budget);
      const turns = await removeMarkedTurns(access, "", limit);
      if (turns === undefined) return;
      spent.turns += turns;
      spent.budget -= turns + 1;
      if (turns < limit) spent.sessions += 1;
    }
  }

  /** Sessions idle since before a score, or those beyond the number that an owner may have. */
  async function removeSessions(script: Script, bound: number, inUse: InUse, spent: Spent): Promise<void> {
    if (spent.budget <= 0) return;
    await access.write(script, [String(bound), String(Math.ceil(spent.budget)), ...inUse()]);
    await removeMarked(spent);
  }

  /**
   * Failed and cancelled turns go by their own age, as the session beside them may be in use forever; so do abandoned
   * threads, each from its end up to where another branches off.
   */
  async function removeTurns(script: Script, before: number, kept: Iterable<string>, spent: Spent): Promise<void> {
    if (spent.budget <= 0) return;
    const args = [before, Math.ceil(spent.budget), looksPerRemoval].map(String);
    const [looked, gone, changes, changed] = toList(await access.write(script, [...args, ...kept]));
    if (looked === undefined) return;
    if (gone !== 0) access.noteChange(changes, toTexts(changed));
    spent.turns += Number(gone);
    spent.budget -= Number(gone) + Number(looked) / looksPerRemoval;
  }

  /** Whole trees outside of sessions without new turns, leaves first, until there are no more or the budget is spent. */
  async function removeSessionless(before: number, inUse: InUse, spent: Spent): Promise<void> {
    if (removing !== undefined) await continueRemoving(await reexamine(removing, before, inUse), spent);
    while (spent.budget > 0) {
      const range = ["-inf", `(${before}`, "LIMIT", String(skippedRoots), "1"];
      const [root] = toTexts(await access.send("ZRANGEBYSCORE", access.key("loose"), ...range));
      if (root === undefined) {
        skippedRoots = 0;
        return;
      }
      const counted = String((await access.send("GET", access.key("count"))) ?? 0);
      const { idle, looked } = await findIdle(root, before, inUse);
      if (idle.length === 0) {
        skippedRoots += 1;
        spent.budget -= 1 + looked / readsPerRemoval;
        continue;
      }
      await continueRemoving({ rest: idle.toReversed(), ids: new Set(idle), before, counted }, spent);
    }
  }

  /**
   * Undefined, so that the tree is examined from its root again: its age limit is another, a new turn follows what is
   * left, or will, or so many have come that one may.
   */
  async function reexamine(tree: Removing, before: number, inUse: InUse): Promise<Removing | undefined> {
    if (before < tree.before) return undefined;
    const [count, parents] = toList(await access.read(scripts.parentsBehind, tree.counted));
    const isUsed = !tree.ids.isDisjointFrom(await readUse(inUse));
    const isContinued = isUsed || parents === undefined || toTexts(parents).some((id) => tree.ids.has(id));
    return isContinued ? undefined : { ...tree, counted: String(count) };
  }

  /** What running turns continue, of this gateway and of the others. */
  async function readUse(inUse: InUse): Promise<ReadonlySet<string>> {
    const told = toTexts(await access.read(scripts.readUse));
    return new Set([...told, ...inUse()]);
  }

  /** All of a tree, parents first, or none of it if anything in it is new or in use. */
  async function findIdle(
    root: string,
    before: number,
    inUse: InUse,
  ): Promise<{ idle: readonly string[]; looked: number }> {
    const seen: string[] = [];
    for await (const { ids, newest, runs } of walkSessionless(access, "", [root])) {
      for (const id of ids) seen.push(id);
      if (runs || newest >= before) return { idle: [], looked: seen.length };
    }
    const used = await readUse(inUse);
    if (seen.some((id) => used.has(id))) return { idle: [], looked: seen.length };
    return { idle: seen, looked: seen.length };
  }

  async function continueRemoving(tree: Removing | undefined, spent: Spent): Promise<void> {
    removing = tree;
    while (spent.budget > 0 && removing !== undefined) {
      const { rest } = removing;
      const going = rest.slice(0, Math.ceil(spent.budget));
      // Another gateway may delete the same tree.
      const [gone, removed, changes] = toList(await access.write(scripts.removeLeaves, going));
      access.noteChange(changes);
      // If something follows them by now, the tree is examined again later.
      const isLeft = gone === going.length && going.length < rest.length;
      removing = isLeft ? { ...removing, rest: rest.slice(going.length) } : undefined;
      spent.turns += Number(removed);
      spent.budget -= Math.max(1, Number(gone));
    }
  }

  return async ({ idleBefore, keysBefore, piecesBefore, maxSessionsPerOwner, inUse = () => new Set() }) => {
    const spent: Spent = { sessions: 0, turns: 0, budget: maxRemovedTurns };
    await removeMarked(spent);
    if (idleBefore !== undefined) await removeSessions(scripts.markIdle, toScore(idleBefore), inUse, spent);
    if (maxSessionsPerOwner !== undefined) await removeSessions(scripts.markSurplus, maxSessionsPerOwner, inUse, spent);
    if (idleBefore !== undefined) await removeTurns(scripts.removeFailed, idleBefore.getTime(), [], spent);
    if (idleBefore !== undefined) await removeTurns(scripts.removeAbandoned, idleBefore.getTime(), inUse(), spent);
    if (idleBefore !== undefined) await removeSessionless(idleBefore.getTime(), inUse, spent);
    const keysLeft = await removeOld(access, scripts.removeKeys, keysBefore);
    const piecesLeft = await removeOld(access, scripts.removePieces, piecesBefore);
    const more = spent.budget <= 0 || keysLeft || piecesLeft;
    return { sessions: spent.sessions, turns: spent.turns, more };
  };
}

/** A tree outside of sessions that is being deleted: a large one is not walked again for each part of it. */
interface Removing {
  /** What is left of it, leaves first. */
  readonly rest: readonly string[];
  readonly ids: ReadonlySet<string>;
  /** The age limit, and the arrival count, when it was examined. */
  readonly before: number;
  readonly counted: string;
}

/** True if there may be more. */
async function removeOld(access: Access, script: Script, before: Date | undefined): Promise<boolean> {
  return (
    before !== undefined && (await access.write(script, [String(before.getTime()), String(maxSmall)])) === maxSmall
  );
}

/** How many keys or pieces go in one call. */
const maxSmall = 500;

/** How much cheaper reading a turn is than deleting it. */
const readsPerRemoval = 20;
/** The same for the end of a thread, with all that may follow it. */
const looksPerRemoval = 4;

type InUse = NonNullable<PruneRules["inUse"]>;

interface Spent {
  sessions: number;
  turns: number;
  budget: number;
}

/** Sessions are sorted by 1,024ths of a millisecond. */
function toScore(time: Date): number {
  return time.getTime() * 1024;
}
