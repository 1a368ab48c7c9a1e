/** Reads metrics in the text format of Prometheus. */

/**
 * One value with its name and labels.
 * @typedef {object} Sample
 * @property {string} name
 * @property {Readonly<Record<string, string>>} labels
 * @property {number} value
 */

/**
 * The samples of a text; other lines, such as comments, are skipped.
 * @param {string} text
 * @returns {readonly Sample[]}
 */
export function readMetrics(text) {
  return text.split("\n").flatMap((line) => {
    const found = sample.exec(line);
    if (found === null) return [];
    const [, name = "", labels = "", value = ""] = found;
    return [{ name, labels: readLabels(labels), value: toValue(value) }];
  });
}

/**
 * How long things took.
 * @typedef {object} Histogram
 * @property {ReadonlyMap<number, number>} buckets how many took no longer than each bound, in seconds
 * @property {number} sum
 * @property {number} count
 */

/**
 * The sum of all histograms of a name whose labels are wanted.
 * @param {readonly Sample[]} samples
 * @param {string} name
 * @param {(labels: Sample["labels"]) => boolean} isWanted
 * @returns {Histogram}
 */
export function addUp(samples, name, isWanted) {
  /** @type {Map<number, number>} */
  const buckets = new Map();
  const total = { sum: 0, count: 0 };
  for (const { name: found, labels, value } of samples) {
    if (!found.startsWith(name) || !isWanted(labels)) continue;
    const bound = toValue(labels["le"] ?? "");
    if (found === `${name}_bucket`) buckets.set(bound, (buckets.get(bound) ?? 0) + value);
    if (found === `${name}_sum`) total.sum += value;
    if (found === `${name}_count`) total.count += value;
  }
  return { buckets, ...total };
}

/**
 * The bound within which this share of them lies: buckets tell no more. Undefined if there are none.
 * @param {Histogram} histogram
 * @param {number} share from 0 to 1
 * @returns {number | undefined}
 */
export function boundOf({ buckets, count }, share) {
  if (count === 0) return undefined;
  const bounds = [...buckets].toSorted(([one], [other]) => one - other);
  return bounds.find(([, within]) => within >= share * count)?.[0];
}

/** A label's value may contain braces and escaped quotes; a timestamp may end the line. */
const sample = /^([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)/;
const label = /([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"/g;

/** @param {string} text */
function readLabels(text) {
  const labels = [...text.matchAll(label)];
  return Object.fromEntries(labels.map(([, name = "", value = ""]) => [name, toPlain(value)]));
}

/** @param {string} value */
function toPlain(value) {
  return value.replaceAll(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character));
}

/** @param {string} text */
function toValue(text) {
  return Number(text.replace(/Inf$/, "Infinity"));
}
