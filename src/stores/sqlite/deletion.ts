/**
 * Deletes for callers of the SQLite store: invisible at once, and gone with its space when the promise resolves. If the
 * store fails in between, the error says so, and the next pruning removes the rest. Only a turn that very many follow is
 * found until most of them have moved.
 */
import type { TurnWriter } from "../../core/store.ts";
import { notAllGone } from "../refusals.ts";
import type { Access } from "./access.ts";
import { toTree } from "./sessionless.ts";
import type { Removal } from "./removal.ts";
import { inSteps, maxStep } from "./size.ts";

export function createDeletion(
  access: Access,
  removal: Removal,
): Pick<TurnWriter, "deleteTurn" | "deleteBelow" | "deleteSession"> {
  const { prepare, read } = access;
  // Children came later than their parents, so the newest go first.
  const listBelow = prepare(`
    WITH RECURSIVE ${toTree("id = $id AND owner = $owner AND session IS NULL")}
    SELECT id, bytes FROM tree WHERE id <> $id ORDER BY number DESC`);

  return {
    deleteTurn: (owner, turnId) =>
      changeInSteps(access, removal, () => {
        const moved = removal.moveFollowers(owner, turnId);
        if (moved.length > 0) return { changed: moved, done: false };
        return { changed: removal.removeTurn(owner, turnId), done: true };
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
