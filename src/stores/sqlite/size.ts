/** Bounds how much of the file one step touches, in turns and in bytes, so that no step takes long. */

/** One for each turn, and one more for each part of it: four megabytes, or 200 short turns. */
export const maxStep = 200;
const partBytes = 20_000;

/** How many bytes a turn has. SQLite knows it without reading them. */
export const turnBytes = ["input", "output", "pieces", "memo"]
  .map((column) => `coalesce(octet_length(turns.${column}), 0)`)
  .join(" + ");

/** The first of these turns that fit a budget, and what they cost. The last one may be larger than what is left. */
export function takeWithin<T extends { readonly bytes: number }>(
  turns: readonly T[],
  budget: number,
): { readonly taken: readonly T[]; readonly cost: number } {
  let [count, cost] = [0, 0];
  for (const turn of turns) {
    if (cost >= budget) break;
    count += 1;
    cost += costOf(turn);
  }
  return { taken: turns.slice(0, count), cost };
}

/** All of these turns, in parts that each take one step. */
export function* inSteps<T extends { readonly bytes: number }>(turns: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < turns.length;) {
    const { taken } = takeWithin(turns.slice(start, start + maxStep), maxStep);
    start += taken.length;
    yield taken;
  }
}

/** What a turn costs of a budget. */
export function costOf({ bytes }: { readonly bytes: number }): number {
  return 1 + Math.floor(bytes / partBytes);
}
