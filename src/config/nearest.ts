/** Finds the word that was probably meant. */

/**
 * The known word that is the fewest typos away, if near enough; else the only one with this prefix. Known words are in
 * lower case.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const slips = countSlips(wanted, candidate);
    if (slips >= fewest) continue;
    fewest = slips;
    best = candidate;
  }
  return best ?? onlyBeginning(wanted, known);
}

function onlyBeginning(start: string, known: readonly string[]): string | undefined {
  const [first, second] = known.filter((candidate) => candidate.startsWith(start));
  return second === undefined ? first : undefined;
}

/** Letters to add, drop, change or swap with their neighbour (optimal string alignment). */
function countSlips(from: string, to: string): number {
  let before: number[] = [];
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const line = [row];
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1];
      let slips = Math.min(
        (above[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (above[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) slips = Math.min(slips, (before[column - 2] ?? 0) + 1);
      line.push(slips);
    }
    before = above;
    above = line;
  }
  return above[to.length] ?? 0;
}
