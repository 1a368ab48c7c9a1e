/**
 * The thread in which a caller's items were last found. A program that names one `user` for all its conversations has
 * many threads in one session, and whoever shows the same objects again most likely continues that one.
 */
import type { Item } from "../item.ts";
import type { Path, Track } from "./path.ts";
import type { Shown } from "./shown.ts";
import type { Session } from "../store.ts";

export interface Threads {
  /** The turns that a request most likely continues: the newest of that thread, and of the session's current one. */
  likelyTips(session: Session, shown: Shown): Iterable<string>;
  add(shown: Shown, path: Path): void;
}

/** Keeps neither the items nor the threads in memory. */
export function createThreads(): Threads {
  const tracks = new WeakMap<Item, WeakRef<Track>>();
  return {
    likelyTips(session, { items, end }) {
      const latest = items.slice(Math.max(0, end - maxLatest), end);
      const known = latest.findLast((item) => tracks.has(item));
      const newest = known && tracks.get(known)?.deref()?.turns.at(-1);
      const tips = [newest?.session === session.id ? newest.id : undefined, session.tip];
      return new Set(tips.filter((tip) => tip !== undefined));
    },
    add({ items }, { track }) {
      const last = items.at(-1);
      if (last !== undefined) tracks.set(last, new WeakRef(track));
    },
  };
}

/** How many items are looked at: what was new in the last turn, and its answer, seldom have more. */
const maxLatest = 64;
