/** Lets those who look for the same thing at the same time share a reading of it. */

/** What all of them make of a long turn is in memory before any of it is sent, so others wait for the next reading. */
const maxSharers = 32;

/**
 * Readings under one name follow each other, and fail together: behind a silent store, each would wait longer than the
 * last. One that has begun is not shared any more: it may lack what was stored just before somebody asked.
 */
export function createSharing<Value>(): (name: string, read: () => Promise<Value>) => Promise<Value> {
  const last = new Map<string, Reading<Value>>();

  return (name, read) => {
    const before = last.get(name);
    if (before !== undefined && before.places > 0) {
      before.places -= 1;
      return before.value;
    }
    async function start(): Promise<Value> {
      try {
        await before?.value;
        reading.places = 0;
        return await read();
      } finally {
        if (last.get(name) === reading) last.delete(name);
      }
    }
    const reading = { places: maxSharers - 1, value: start() };
    last.set(name, reading);
    return reading.value;
  };
}

interface Reading<Value> {
  /** How many more may share it. */
  places: number;
  readonly value: Promise<Value>;
}
