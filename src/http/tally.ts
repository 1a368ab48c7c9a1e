/** Counts something for each owner: turns or bytes. Owners that have none take no memory. */
export interface Tally {
  readonly total: number;
  of(owner: string): number;
  add(owner: string, change: number): void;
}

export function createTally(): Tally {
  const counts = new Map<string, number>();
  const of = (owner: string): number => counts.get(owner) ?? 0;
  let total = 0;
  return {
    get total() {
      return total;
    },
    of,
    add(owner, change) {
      total += change;
      const count = of(owner) + change;
      if (count > 0) counts.set(owner, count);
      else counts.delete(owner);
    },
  };
}
