/** Sums up the metrics: how requests ended, how long answers took, and the state of adapters. */
/** @import { Histogram, Sample } from "./prometheus.js" */
import { addUp } from "./prometheus.js";

/**
 * How a request ended.
 * @typedef {"answered" | "refused" | "failed" | "left"} Outcome
 *
 * The requests to one path, and how long the answered ones took.
 * @typedef {{ readonly path: string, readonly seconds: Histogram } & Readonly<Record<Outcome, number>>} PathCount
 *
 * @typedef {object} AdapterCount
 * @property {string} name
 * @property {string} state of its breaker
 * @property {number} turns how often it was asked
 * @property {number} failed
 * @property {number} input in tokens
 * @property {number} output
 * @property {Histogram} seconds
 *
 * @typedef {object} Summary
 * @property {number | undefined} startedAt in seconds since 1970
 * @property {number} running turns that run now
 * @property {number} waiting those that wait for another turn of their session
 * @property {Histogram} firstByte of streams
 * @property {Histogram} turns from request to end, of those that were answered
 * @property {readonly PathCount[]} endpoints under `/v1`, the busiest first
 * @property {readonly PathCount[]} others
 * @property {readonly AdapterCount[]} adapters
 */

/** @type {readonly Outcome[]} */
export const outcomes = ["answered", "refused", "failed", "left"];

/**
 * @param {readonly Sample[]} samples
 * @returns {Summary}
 */
export function summarise(samples) {
  const paths = countPaths(samples);
  const isTurn = new Set(
    samples.flatMap(({ name, labels }) => (name === `${firstByte}_count` ? [labels["path"]] : [])),
  );
  return {
    startedAt: samples.find(({ name }) => name === "process_start_time_seconds")?.value,
    running: sum(samples, "portico_turns_running"),
    waiting: sum(samples, "portico_turns_waiting"),
    firstByte: addUp(samples, firstByte, ({ stream }) => stream === "true"),
    turns: addUp(samples, requestSeconds, ({ path, outcome }) => outcome === "answered" && isTurn.has(path)),
    endpoints: paths.filter(({ path }) => path.startsWith("/v1/")),
    others: paths.filter(({ path }) => !path.startsWith("/v1/")),
    adapters: samples.flatMap(({ name, labels: { adapter = "", state = "" }, value }) =>
      name === "portico_adapter_breaker_state" && value === 1 ? [countAdapter(samples, adapter, state)] : [],
    ),
  };
}

const requestSeconds = "portico_request_seconds";
const firstByte = "portico_first_byte_seconds";

/**
 * How many requests there were, of one outcome or in all.
 * @param {readonly PathCount[]} paths
 * @param {readonly Outcome[]} [wanted]
 */
export function totalOf(paths, wanted = outcomes) {
  return paths.reduce((total, count) => wanted.reduce((sum, outcome) => sum + count[outcome], total), 0);
}

/**
 * The busiest first.
 * @param {readonly Sample[]} samples
 * @returns {readonly PathCount[]}
 */
function countPaths(samples) {
  /** @type {Map<string, Record<Outcome, number>>} */
  const counts = new Map();
  for (const { name, labels, value } of samples) {
    // A stream's status is sent before it ends, so the counter by status does not know its outcome.
    const outcome = outcomes.find((known) => known === labels["outcome"]);
    if (name !== `${requestSeconds}_count` || outcome === undefined) continue;
    const { path = "" } = labels;
    const count = counts.get(path) ?? { answered: 0, refused: 0, failed: 0, left: 0 };
    counts.set(path, count);
    count[outcome] += value;
  }
  return Array.from(counts, ([path, count]) => ({
    ...count,
    path,
    seconds: addUp(samples, requestSeconds, (labels) => labels["path"] === path && labels["outcome"] === "answered"),
  })).toSorted((one, other) => totalOf([other]) - totalOf([one]));
}

/**
 * @param {readonly Sample[]} samples
 * @param {string} name
 * @param {string} state
 * @returns {AdapterCount}
 */
function countAdapter(samples, name, state) {
  const own = samples.filter(({ labels }) => labels["adapter"] === name);
  return {
    name,
    state,
    turns: sum(own, "portico_adapter_turns_total"),
    failed: sum(own, "portico_adapter_turns_total", ({ outcome }) => outcome === "failed"),
    input: sum(own, "portico_tokens_total", ({ kind }) => kind === "input"),
    output: sum(own, "portico_tokens_total", ({ kind }) => kind === "output"),
    seconds: addUp(own, "portico_adapter_seconds", () => true),
  };
}

/**
 * @param {readonly Sample[]} samples
 * @param {string} name
 * @param {(labels: Sample["labels"]) => boolean} [isWanted]
 */
function sum(samples, name, isWanted = () => true) {
  return samples.reduce((total, sample) => {
    return sample.name === name && isWanted(sample.labels) ? total + sample.value : total;
  }, 0);
}
