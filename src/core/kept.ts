/**
 * A cache bounded in size and time. What is in it stays until its time is over, and while there is no room, nothing is
 * added: if the oldest made room, and more were used in turn than there is room for, none would ever be found again.
 */

export interface Kept<Key, Value> {
  get(key: Key): Value | undefined;
  /** Whether something of this size could be added. */
  hasRoom(size: number): boolean;
  /** `size` is about how much memory it takes. */
  set(key: Key, value: Value, size: number): void;
  delete(key: Key): void;
  clear(): void;
}

export interface KeptParts {
  /** Read on every use, since it may change. */
  readonly maxSize: () => number;
  /** Calls back after a while: what was set before the call before is then forgotten. */
  readonly later: (work: () => void) => void;
}

export function createKept<Key, Value>({ maxSize, later }: KeptParts): Kept<Key, Value> {
  let newer = createGeneration<Key, Value>();
  let older = createGeneration<Key, Value>();
  let isAging = false;

  function age(): void {
    older = newer;
    newer = createGeneration();
    isAging = false;
    ageLater();
  }

  function ageLater(): void {
    if (isAging || newer.entries.size + older.entries.size === 0) return;
    isAging = true;
    later(age);
  }

  function remove(key: Key): void {
    for (const generation of [newer, older]) {
      generation.size -= generation.entries.get(key)?.size ?? 0;
      generation.entries.delete(key);
    }
  }

  function hasRoom(size: number): boolean {
    return newer.size + older.size + size <= maxSize();
  }

  return {
    hasRoom,
    get: (key) => (newer.entries.get(key) ?? older.entries.get(key))?.value,
    set(key, value, size) {
      remove(key);
      if (!hasRoom(size)) return;
      newer.entries.set(key, { value, size });
      newer.size += size;
      ageLater();
    },
    delete: remove,
    clear() {
      newer = createGeneration();
      older = createGeneration();
    },
  };
}

interface Generation<Key, Value> {
  readonly entries: Map<Key, { readonly value: Value; readonly size: number }>;
  size: number;
}

function createGeneration<Key, Value>(): Generation<Key, Value> {
  return { entries: new Map(), size: 0 };
}
