/** Counts what repeats within a minute, so that a flood or a lasting trouble can be told in a few lines. */

const minuteMs = 60_000;
/** Texts beyond so many count as one: an attack from everywhere must fill neither the memory nor the log. */
const maxTexts = 100;

/** How often this text has come within the minute that is under way, this time included. */
export function createCounts(now: () => number): (text: string) => number {
  const counts = new Map<string, number>();
  let since = 0;
  return (text) => {
    const ageMs = now() - since;
    // If the clock was set back, count anew.
    if (ageMs < 0 || ageMs >= minuteMs) {
      since += ageMs;
      counts.clear();
    }
    const counted = counts.size < maxTexts || counts.has(text) ? text : "";
    const count = (counts.get(counted) ?? 0) + 1;
    counts.set(counted, count);
    return count;
  };
}
