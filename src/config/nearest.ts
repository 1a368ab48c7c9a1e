/** Finds the word that was probably meant. */

/** The known word with the fewest other letters, if near enough; else the only one that begins so. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  const most = Math.max(1, Math.floor(wanted.length / 3));
  const [best] = known
    .map((candidate) => [candidate, countOthers(wanted, candidate)] as const)
    .filter(([, others]) => others <= most)
    .toSorted(([, one], [, other]) => one - other);
  if (best !== undefined) return best[0];
  const [only, ...more] = known.filter((candidate) => candidate.startsWith(wanted));
  return more.length === 0 ? only : undefined;
}

/** Letters that only one of them has: most slips leave out, add or swap some. */
function countOthers(one: string, other: string): number {
  let rest = other;
  let missing = 0;
  for (const letter of one) {
    const shorter = rest.replace(letter, () => "");
    if (shorter === rest) missing += 1;
    rest = shorter;
  }
  return missing + rest.length;
}
