/** Finds the word that was probably meant. */

/** The known word that is the fewest slips away, if near enough; else the only one that begins so. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const [best] = known
    .map((candidate) => [candidate, countSlips(wanted, candidate)] as const)
    .filter(([, slips]) => slips <= most)
    .toSorted(([, one], [, other]) => one - other);
  if (best !== undefined) return best[0];
  const [only, ...others] = known.filter((candidate) => candidate.startsWith(wanted));
  return others.length === 0 ? only : undefined;
}

/** Letters to add, drop, change or swap with their neighbour. */
function countSlips(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= from.length; row++) {
    const line = [row];
    rows.push(line);
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      line.push(
        Math.min(
          at(row - 1, column) + 1,
          at(row, column - 1) + 1,
          at(row - 1, column - 1) + (isSame ? 0 : 1),
          isSwapped ? at(row - 2, column - 2) + 1 : Infinity,
        ),
      );
    }
  }
  return at(from.length, to.length);
}
