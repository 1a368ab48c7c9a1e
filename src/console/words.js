/** Formats numbers and times. */

const numbers = new Intl.NumberFormat("en");
const shortNumbers = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const dates = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
const distances = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** @param {number} count */
export function toNumber(count) {
  return numbers.format(count);
}

/**
 * @param {number} count
 * @param {string} noun in the singular
 */
export function toCount(count, noun) {
  return `${numbers.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {number} seconds */
export function toDuration(seconds) {
  return seconds < 1 ? `${shortNumbers.format(seconds * 1000)} ms` : `${shortNumbers.format(seconds)} s`;
}

/**
 * A long time, in its largest unit or two.
 * @param {number} seconds
 */
export function toSpan(seconds) {
  const rest = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [Math.floor(rest / 86_400), Math.floor(rest / 3_600) % 24, Math.floor(rest / 60) % 60];
  if (days > 0) return `${numbers.format(days)} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min` : `${rest} s`;
}

/** @param {string} time in ISO form */
export function toDate(time) {
  return dates.format(new Date(time));
}

/**
 * How long ago it was.
 * @param {string} time in ISO form
 * @param {Date} now
 */
export function toDistance(time, now) {
  const seconds = (new Date(time).getTime() - now.getTime()) / 1000;
  const [unit, length] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return distances.format(Math.round(seconds / length), unit);
}

/** @type {readonly (readonly [Intl.RelativeTimeFormatUnit, number])[]} */
const units = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
