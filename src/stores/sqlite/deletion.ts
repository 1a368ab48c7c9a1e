/**
 * Deletes for callers of the SQLite store: invisible at once, and gone with its space when the promise resolves. If the
 * store fails in between, the error says so, and the next pruning removes the rest. Only a turn that very many follow is
 * found until most of them have moved.
 */
import { shownSuffix } from "../../core/conversation/address.ts";
import type { TurnWriter } from "../../core/store.ts";
import { notAllGone } from "../refusals.ts";
import type { Access } from "./access.ts";
import { toTree } from "./sessionless.ts";
import type { Removal } from "./removal.ts";
import { isVisible } from "./search.ts";
import { inSteps, maxStep, takeWithin, turnBytes } from "./size.ts";

/** How a turn leaves the tree, in the group. Each returns the ids of all that changed. */
export interface TurnRemoval {
  /** A tip moves to `tip` or the parent. Undefined if the owner has no such turn. */
  removeTurn(owner: string, turnId: string, tip?: string): readonly string[] | undefined;
  /** Moves those that follow it to where its removal would, as many as take one step; none if all of them do. */
  moveFollowers(owner: string, turnId: string): readonly string[];
}

export function createTurnRemoval({ prepare }: Access, removal: Removal): TurnRemoval {
  const findPlace = prepare(`SELECT session, parent FROM turns WHERE id = ? AND owner = ? AND ${isVisible}`);
  const hasTwoChildren = prepare("SELECT 1 FROM turns WHERE parent = ? LIMIT 1 OFFSET 1");
  const moveTip = prepare(
    "UPDATE sessions SET tip = coalesce((SELECT id FROM turns WHERE id = ?), ?) WHERE id = ? AND tip = ?",
  );
  const listFollowers = prepare(`SELECT id, ${turnBytes} AS bytes FROM turns WHERE parent = ? LIMIT ?`);
  const follow = prepare("UPDATE turns SET parent = ?, gap = 1 WHERE id IN (SELECT value FROM json_each(?))");

  function readPlace(owner: string, turnId: string): TurnPlace | undefined {
    const place = findPlace.get(turnId, owner) as { session: string | null; parent: string | null } | undefined;
    if (place === undefined) return undefined;
    const takesShown = place.parent === `${turnId}${shownSuffix}` && hasTwoChildren.get(place.parent) === undefined;
    return { ...place, shown: takesShown ? place.parent : null };
  }

  function removeTurn(owner: string, turnId: string, tip?: string): readonly string[] | undefined {
    const place = readPlace(owner, turnId);
    if (place === undefined) return undefined;
    const { session, parent, shown } = place;
    if (session !== null) moveTip.run(tip ?? null, parent, session, turnId);
    const changed = removal.removeTurns([turnId], parent ?? undefined);
    return shown === null ? changed : [...changed, ...(removeTurn(owner, shown) ?? [])];
  }

  return {
    removeTurn,
    moveFollowers(owner, turnId) {
      const followers = listFollowers.all(turnId, maxStep + 1) as { id: string; bytes: number }[];
      const ids = takeWithin(followers, maxStep).taken.map(({ id }) => id);
      const place = ids.length < followers.length ? readPlace(owner, turnId) : undefined;
      if (place === undefined) return [];
      const heir = place.shown === null ? place.parent : readPlace(owner, place.shown)?.parent;
      follow.run(heir ?? null, JSON.stringify(ids));
      return ids;
    },
  };
}

interface TurnPlace {
  readonly session: string | null;
  readonly parent: string | null;
  /** The history that was shown with it, if nothing else follows that: it goes too. */
  readonly shown: string | null;
}

export function createDeletion(
  access: Access,
  removal: Removal,
  { removeTurn, moveFollowers }: TurnRemoval,
): Pick<TurnWriter, "deleteTurn" | "deleteBelow" | "deleteSession"> {
  const { prepare, read } = access;
  // Children came later than their parents, so the newest go first.
  const listBelow = prepare(`
    WITH RECURSIVE ${toTree("id = $id AND owner = $owner AND session IS NULL")}
    SELECT id, bytes FROM tree WHERE id <> $id ORDER BY number DESC`);

  return {
    deleteTurn: (owner, turnId) =>
      changeInSteps(access, removal, () => {
        const moved = moveFollowers(owner, turnId);
        if (moved.length > 0) return { changed: moved, done: false };
        return { changed: removeTurn(owner, turnId), done: true };
      }),
    async deleteBelow(owner, turnId) {
      const below = read(() => listBelow.all({ id: turnId, owner })) as { id: string; bytes: number }[];
      const steps = [...inSteps(below)].map((part) => part.map(({ id }) => id));
      await changeInSteps(access, removal, (index) => ({
        changed: steps[index] && removal.removeTurns(steps[index], turnId),
        done: index + 1 >= steps.length,
      }));
      return below.length;
    },
    deleteSession: (owner, sessionId) =>
      changeInSteps(access, removal, (index) => {
        if (index > 0) return removal.removeSome(sessionId, maxStep);
        if (!removal.mark(owner, sessionId)) return nothingLeft;
        // Not the session yet: until its other turns are gone, none that was begun before may create it again.
        return { ...removal.removeTurnsOf(sessionId, maxStep), done: false, hides: [sessionId] };
      }),
  };
}

/** What a step did. */
interface Step {
  /** The ids of all turns that changed; undefined if there was nothing to do. */
  readonly changed: readonly string[] | undefined;
  /** It was the last. */
  readonly done: boolean;
  /** The sessions that are invisible from now on, whatever becomes of the next steps. */
  readonly hides?: readonly string[] | undefined;
}

/**
 * Changes turns in steps, from index 0 on, and gives back as much space as that freed, of the file and of its log. What
 * others have freed goes when the store is pruned, and nobody waits for it. False if there was nothing to do.
 */
export async function changeInSteps(
  { group, checkpoints, recent }: Access,
  removal: Removal,
  change: (index: number) => Step,
): Promise<boolean> {
  let [isChanged, isDone, isHidden, owed] = [false, false, false, 0];
  try {
    for (let index = 0; !isDone || owed > 0; index += 1) {
      if (index > 0) await pause();
      const step = await group.add(
        () => {
          const before = removal.countFree();
          const { changed, done, hides = [] } = isDone ? nothingLeft : change(index);
          const countOwed = () => owed + removal.countFree() - before;
          const isGivenBack = countOwed() <= 0 || removal.giveBack(countOwed());
          return { changed, done, hides, owed: isGivenBack ? 0 : countOwed() };
        },
        ({ changed, hides }) => {
          recent.forget(changed ?? []);
          recent.forgetSessions(hides);
        },
      );
      ({ done: isDone, owed } = step);
      isChanged ||= step.changed !== undefined;
      isHidden ||= step.hides.length > 0;
    }
    if (isChanged) await checkpoints.emptyLog();
  } catch (thrown) {
    throw isDone || isHidden ? notAllGone(thrown) : thrown;
  }
  return isChanged;
}

const nothingLeft: Step = { changed: undefined, done: true };

/** Between two steps another process gets its turn: it tries the lock only now and then, and for one second. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, pauseMs));
}

const pauseMs = 10;
