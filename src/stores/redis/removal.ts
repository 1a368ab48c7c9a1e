/** Deletes turns and sessions from the Redis store: for good, and little by little, so that Redis can serve others. */
import { shownSuffix } from "../../core/conversation/address.ts";
import type { Keeping, PruneRules, Pruned } from "../../core/store.ts";
import type { Ground } from "./ground.ts";
import { listLoose, walkLoose } from "./loose.ts";
import { type Script, inParts, toList, toTexts } from "./script.ts";
import { scripts } from "./scripts.ts";

/** What a caller deletes is invisible at once, and gone when the promise resolves. */
export function createDeletion(ground: Ground): Pick<Keeping, "deleteTurn" | "deleteBelow" | "deleteSession"> {
  return {
    async deleteTurn(owner, turnId) {
      const [changes, changed] = toList(await ground.write(scripts.deleteTurn, [owner, turnId, shownSuffix]));
      if (changes === undefined) return false;
      ground.noteChange(changes, toTexts(changed));
      return true;
    },
    async deleteBelow(owner, turnId) {
      const below = (await listLoose(ground, owner, turnId)).slice(1).toReversed();
      for (const going of inParts(below, maxRemovedTurns)) {
        const [changes, changed] = toList(await ground.write(scripts.removeBelow, [turnId, ...going]));
        ground.noteChange(changes, toTexts(changed));
      }
      return below.length;
    },
    async deleteSession(owner, sessionId) {
      const changes = await ground.write(scripts.doomSession, [owner, sessionId]);
      if (changes === null) return false;
      ground.noteChange(changes);
      for (let isGone = false; !isGone;) isGone = (await removeDoomed(ground, sessionId, maxRemovedTurns)).isGone;
      return true;
    },
  };
}

/** How many turns one script deletes: a pause of some milliseconds. */
const maxRemovedTurns = 200;

/** Deletes at most `limit` turns of a session marked as deleted, or of any such; with the last of them the session. */
export async function removeDoomed(
  ground: Ground,
  sessionId: string,
  limit: number,
): Promise<{ readonly turns: number; readonly isGone: boolean; readonly isNone: boolean }> {
  const [turns, isGone, changes] = toList(await ground.write(scripts.removeDoomed, [sessionId, String(limit)]));
  if (turns === undefined) return { turns: 0, isGone: true, isNone: true };
  ground.noteChange(changes);
  return { turns: Number(turns), isGone: isGone === 1, isNone: false };
}

/** Deletes what the rules no longer keep: a bounded number at a time, the oldest first. */
export function createPrune(ground: Ground): (rules: PruneRules) => Promise<Pruned> {
  /** Old roots with new descendants stay: the next call continues after those examined. */
  let skippedRoots = 0;
  /** The rest of a tree being deleted, leaves first: a large one is not walked again for each part of it. */
  let dying: readonly string[] = [];
  /** Its age limit, the ids in it, and the arrival count when it was examined. */
  let [dyingBefore, dyingIds, counted] = [0, new Set<string>(), "0"];

  async function removeMarked(spent: Spent): Promise<void> {
    while (spent.budget > 0) {
      const { turns, isGone, isNone } = await removeDoomed(ground, "", Math.ceil(spent.budget));
      if (isNone) return;
      spent.turns += turns;
      spent.budget -= turns + 1;
      if (isGone) spent.sessions += 1;
    }
  }

  /** Sessions idle since before a score, or those beyond the number that an owner may have. */
  async function removeSessions(script: Script, bound: number, spent: Spent): Promise<void> {
    if (spent.budget <= 0) return;
    await ground.write(script, [bound, Math.ceil(spent.budget)].map(String));
    await removeMarked(spent);
  }

  /** Failed and cancelled turns go by their own age: the session beside them may be in use forever. */
  async function removeFailed(before: number, spent: Spent): Promise<void> {
    if (spent.budget <= 0) return;
    const args = [String(before), String(Math.ceil(spent.budget))];
    const [changes, ids] = toList(await ground.write(scripts.removeFailed, args));
    if (changes === undefined) return;
    const gone = toTexts(ids);
    ground.noteChange(changes, gone);
    spent.turns += gone.length;
    spent.budget -= gone.length;
  }

  /** Abandoned threads, each from its end up to where another branches off. */
  async function removeLeft(before: number, spent: Spent): Promise<void> {
    if (spent.budget <= 0) return;
    const args = [before, Math.ceil(spent.budget), looksPerRemoval].map(String);
    const [looked, gone, changes, changed] = toList(await ground.write(scripts.removeLeft, args));
    if (looked === undefined) return;
    if (gone !== 0) ground.noteChange(changes, toTexts(changed));
    spent.turns += Number(gone);
    spent.budget -= Number(gone) + Number(looked) / looksPerRemoval;
  }

  /** Whole trees outside of sessions without new turns, leaves first. True if there are more to examine. */
  async function removeLoose(before: number, spent: Spent): Promise<boolean> {
    if (before < dyingBefore || (await isContinued())) dying = [];
    await removeDying(spent);
    while (spent.budget > 0) {
      const range = ["-inf", `(${before}`, "LIMIT", String(skippedRoots), "1"];
      const [root] = toTexts(await ground.send("ZRANGEBYSCORE", ground.key("loose"), ...range));
      if (root === undefined) {
        skippedRoots = 0;
        return false;
      }
      counted = String((await ground.send("GET", ground.key("count"))) ?? 0);
      const { idle, looked } = await findIdle(root, before);
      if (idle.length === 0) {
        skippedRoots += 1;
        spent.budget -= 1 + looked / readsPerRemoval;
        continue;
      }
      dying = idle.toReversed();
      dyingBefore = before;
      dyingIds = new Set(idle);
      await removeDying(spent);
    }
    return true;
  }

  /** A new turn follows what is left, or so many have come that one may: then the tree is examined again. */
  async function isContinued(): Promise<boolean> {
    if (dying.length === 0) return false;
    const [count, parents] = toList(await ground.read(scripts.parentsBehind, counted));
    counted = String(count);
    return parents === undefined || toTexts(parents).some((id) => dyingIds.has(id));
  }

  /** All of a tree, parents first, or none of it if anything in it is new. */
  async function findIdle(root: string, before: number): Promise<{ idle: readonly string[]; looked: number }> {
    const seen: string[] = [];
    for await (const { ids, newest, runs } of walkLoose(ground, "", [root])) {
      for (const id of ids) seen.push(id);
      if (runs || newest >= before) return { idle: [], looked: seen.length };
    }
    return { idle: seen, looked: seen.length };
  }

  async function removeDying(spent: Spent): Promise<void> {
    while (spent.budget > 0 && dying.length > 0) {
      const going = dying.slice(0, Math.ceil(spent.budget));
      // Another gateway may delete the same tree.
      const [gone, removed, changes] = toList(await ground.write(scripts.removeLeaves, going));
      ground.noteChange(changes);
      // If something follows them by now, the tree is examined again later.
      dying = gone === going.length ? dying.slice(going.length) : [];
      spent.turns += Number(removed);
      spent.budget -= Math.max(1, Number(gone));
    }
  }

  return async ({ idleBefore, keysBefore, piecesBefore, maxSessionsPerOwner }) => {
    const spent: Spent = { sessions: 0, turns: 0, budget: maxRemovedTurns };
    await removeMarked(spent);
    if (idleBefore !== undefined) await removeSessions(scripts.doomIdle, toScore(idleBefore), spent);
    if (maxSessionsPerOwner !== undefined) await removeSessions(scripts.doomSurplus, maxSessionsPerOwner, spent);
    if (idleBefore !== undefined) await removeFailed(idleBefore.getTime(), spent);
    if (idleBefore !== undefined) await removeLeft(idleBefore.getTime(), spent);
    const rootsLeft = idleBefore !== undefined && (await removeLoose(idleBefore.getTime(), spent));
    const keysLeft = await removeOld(ground, scripts.removeKeys, keysBefore);
    const piecesLeft = await removeOld(ground, scripts.removePieces, piecesBefore);
    const more = spent.budget <= 0 || rootsLeft || keysLeft || piecesLeft;
    return { sessions: spent.sessions, turns: spent.turns, more };
  };
}

/** True if there may be more. */
async function removeOld(ground: Ground, script: Script, before: Date | undefined): Promise<boolean> {
  return (
    before !== undefined && (await ground.write(script, [String(before.getTime()), String(maxSmall)])) === maxSmall
  );
}

/** How many keys or pieces go in one call. */
const maxSmall = 500;

/** How much cheaper reading a turn is than deleting it. */
const readsPerRemoval = 20;
/** The same for the end of a thread, with all that may follow it. */
const looksPerRemoval = 4;

interface Spent {
  sessions: number;
  turns: number;
  budget: number;
}

/** Sessions are sorted by 1,024ths of a millisecond. */
function toScore(time: Date): number {
  return time.getTime() * 1024;
}
