/**
 * A cache bounded in size and time. What has been idle for a while makes room, the idlest first; what has not stays, and
 * while there is nothing else, nothing is added: if it made room too, and more were used in turn than there is room for,
 * none would ever be found again.
 */

export interface Kept<Key, Value> {
  get(key: Key): Value | undefined;
  /** Whether something of this size could be added; if so, what is idle has made room for it. */
  hasRoom(size: number): boolean;
  /** `size` is about how much memory it takes. */
  set(key: Key, value: Value, size: number): void;
  delete(key: Key): void;
  clear(): void;
}

export interface KeptParts {
  /** Read on every use, since it may change. */
  readonly maxSize: () => number;
  /** Calls back after a period. */
  readonly later: (work: () => void) => void;
}

/** What was not set again for so many periods makes room for others. */
const idlePeriods = 2;
/** What was not set again for so many is forgotten. */
const maxPeriods = 10;

export function createKept<Key, Value>({ maxSize, later }: KeptParts): Kept<Key, Value> {
  /** Set longest ago first. */
  const entries = new Map<Key, Entry<Value>>();
  /** How much of it was set in which period. */
  const sizes = new Map<number, number>();
  let total = 0;
  let period = 0;
  let isAging = false;

  function age(): void {
    period += 1;
    forgetIdle(maxPeriods, 0);
    sizes.delete(period - maxPeriods);
    isAging = false;
    ageLater();
  }

  function ageLater(): void {
    if (isAging || entries.size === 0) return;
    isAging = true;
    later(age);
  }

  /** Forgets what was not set again for so many periods, the idlest first, until at most this size is left. */
  function forgetIdle(periods: number, size: number): void {
    for (const [key, { since }] of entries) {
      if (total <= size || period - since < periods) return;
      remove(key);
    }
  }

  function count(since: number, size: number): void {
    sizes.set(since, (sizes.get(since) ?? 0) + size);
    total += size;
  }

  function remove(key: Key): void {
    const entry = entries.get(key);
    if (entry === undefined) return;
    entries.delete(key);
    count(entry.since, -entry.size);
  }

  function activeSize(): number {
    let size = 0;
    for (let since = period; since > period - idlePeriods; since -= 1) size += sizes.get(since) ?? 0;
    return size;
  }

  function hasRoom(size: number): boolean {
    const room = maxSize() - size;
    // Not in vain: a Map finds its first entry by passing over all that it has deleted before that one.
    if (total > room && activeSize() <= room) forgetIdle(idlePeriods, room);
    return total <= room;
  }

  return {
    hasRoom,
    get: (key) => entries.get(key)?.value,
    set(key, value, size) {
      remove(key);
      if (!hasRoom(size)) return;
      entries.set(key, { value, size, since: period });
      count(period, size);
      ageLater();
    },
    delete: remove,
    clear() {
      entries.clear();
      sizes.clear();
      total = 0;
    },
  };
}

interface Entry<Value> {
  readonly value: Value;
  readonly size: number;
  /** The period in which it was set. */
  readonly since: number;
}
