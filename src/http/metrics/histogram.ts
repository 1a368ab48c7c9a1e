/** Durations, sorted into buckets with fixed bounds: counting one costs a few comparisons and no memory. */

export interface Histogram {
  /** The upper bound of each bucket, in seconds. */
  readonly bounds: readonly number[];
  /** How many fell into each bucket and into no smaller one; the last entry counts what exceeds every bound. */
  readonly counts: readonly number[];
  /** The total, in seconds. */
  readonly sum: number;
  observe(milliseconds: number): void;
}

export function createHistogram(bounds: readonly number[]): Histogram {
  const counts = Array.from({ length: bounds.length + 1 }, () => 0);
  let sum = 0;
  return {
    bounds,
    counts,
    get sum() {
      return sum;
    },
    observe(milliseconds) {
      const seconds = milliseconds / 1000;
      sum += seconds;
      const found = bounds.findIndex((bound) => seconds <= bound);
      const index = found === -1 ? bounds.length : found;
      counts[index] = (counts[index] ?? 0) + 1;
    },
  };
}

/** From one word of a local model to an agent's long run. */
export const turnBounds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** From a page in a disk's cache to a server that hardly responds. */
export const commitBounds: readonly number[] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
