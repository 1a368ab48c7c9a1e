/** A time as both wires count it. */
export function toSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}
