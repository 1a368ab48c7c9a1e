/** Counts something for each owner: turns, bytes, characters. Owners that have none take no memory. */
export interface Tally {
  readonly total: number;
  of(owner: string): number;
  add(owner: string, change: number): void;
  /** Who has the most, if anybody has any: if that one gives way, nobody can keep the others out. */
  largest(): string;
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
    largest() {
      let largest = "";
      for (const [owner, count] of counts) if (count > of(largest)) largest = owner;
      return largest;
    },
  };
}
