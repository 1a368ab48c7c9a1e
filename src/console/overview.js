/** The overview: whether the gateway is ready, how its requests end, how long they take, and its adapters' state. */
/** @import { Place, Refresh } from "./main.js" */
/** @import { Histogram } from "./prometheus.js" */
/** @import { AdapterCount, Outcome, PathCount, Summary } from "./summary.js" */
import { ask } from "./api.js";
import { fill, make, makeTable, part, say } from "./elements.js";
import { boundOf, readMetrics } from "./prometheus.js";
import { outcomes, summarise, totalOf } from "./summary.js";
import { toDate, toDuration, toNumber, toSpan } from "./words.js";

/**
 * @param {Place} place
 * @returns {Promise<Refresh>}
 */
export async function openOverview({ root, token, signal }) {
  /** @type {{ readonly at: number, readonly total: number }[]} */
  const past = [];

  async function read() {
    const response = await ask("metrics", token, { signal });
    const summary = summarise(readMetrics(await response.text()));
    const total = totalOf(summary.endpoints);
    // A gateway that was restarted counts from zero.
    if (total < (past.at(-1)?.total ?? 0)) past.length = 0;
    past.push({ at: performance.now(), total });
    while (past.length > 1 && (past[0]?.at ?? 0) < performance.now() - minuteMs) past.shift();
    // The browser's clock need not agree with the gateway's.
    return { summary, now: new Date(response.headers.get("date") ?? Date.now()) };
  }

  const first = await read();
  fill(root, "overview");
  show(root, first, undefined);
  return async (health) => {
    say(part(root, "trouble", HTMLElement), health.state === "not-ready" ? `Not ready: ${health.words}` : undefined);
    if (health.state !== "gone") show(root, await read(), rateOf(past));
  };
}

const minuteMs = 60_000;

/**
 * Requests a minute, as far as this page has seen them; undefined before its second look.
 * @param {readonly { readonly at: number, readonly total: number }[]} past
 */
function rateOf(past) {
  const [first] = past;
  const last = past.at(-1);
  if (first === undefined || last === undefined || first === last) return undefined;
  return ((last.total - first.total) / (last.at - first.at)) * minuteMs;
}

/**
 * @param {HTMLElement} root
 * @param {{ readonly summary: Summary, readonly now: Date }} reading
 * @param {number | undefined} rate
 */
function show(root, { summary, now }, rate) {
  const { endpoints, others, adapters } = summary;
  const total = totalOf(endpoints);
  part(root, "figures", HTMLElement).replaceChildren(
    ...toFigures(summary, now, rate).map(([name, figure, beside]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, figure, make("small", {}, beside))),
    ),
  );
  part(root, "no-requests", HTMLElement).hidden = total > 0;
  part(root, "requests", HTMLElement).hidden = total === 0;
  part(root, "share", HTMLElement).replaceChildren(
    ...outcomes.map((outcome) => {
      const piece = make("i", { class: outcome });
      const count = totalOf(endpoints, [outcome]);
      piece.style.flexGrow = String(count);
      piece.hidden = count === 0;
      return piece;
    }),
  );
  part(root, "legend", HTMLElement).replaceChildren(
    ...outcomes.map((outcome) => {
      const count = make("b", {}, toNumber(totalOf(endpoints, [outcome])));
      return make("li", {}, make("i", { class: `dot ${outcome}` }), outcomeWords[outcome], count);
    }),
  );
  part(root, "paths", HTMLElement).replaceChildren(toTable(endpoints));
  part(root, "others", HTMLElement).replaceChildren(toTable(others));
  part(root, "adapters", HTMLElement).replaceChildren(toAdapterTable(adapters));
}

/**
 * Its name, its value, and the small print beside it.
 * @param {Summary} summary
 * @param {Date} now
 * @param {number | undefined} rate
 * @returns {readonly (readonly [name: string, figure: string, beside: string])[]}
 */
function toFigures({ startedAt, running, waiting, firstByte, turns, endpoints, adapters }, now, rate) {
  const since = startedAt === undefined ? undefined : new Date(startedAt * 1000);
  const upSeconds = since && (now.getTime() - since.getTime()) / 1000;
  const input = adapters.reduce((sum, adapter) => sum + adapter.input, 0);
  const output = adapters.reduce((sum, adapter) => sum + adapter.output, 0);
  return [
    ["Uptime", upSeconds === undefined ? "–" : toSpan(upSeconds), since ? `since ${toDate(since.toISOString())}` : ""],
    ["Turns running", toNumber(running), `${toNumber(waiting)} waiting`],
    [
      "Requests per minute",
      rate === undefined ? "–" : toNumber(Math.round(rate)),
      `${toNumber(totalOf(endpoints))} in total`,
    ],
    ["Tokens read", toNumber(input), `${toNumber(output)} written`],
    ["First byte of a stream, p50", toBound(firstByte, 0.5), `p95 ${toBound(firstByte, 0.95)}`],
    ["Whole turn, p50", toBound(turns, 0.5), `p95 ${toBound(turns, 0.95)}`],
  ];
}

/**
 * @param {Histogram} histogram
 * @param {number} share
 */
function toBound(histogram, share) {
  const bound = boundOf(histogram, share);
  if (bound === undefined) return "–";
  return Number.isFinite(bound) ? `≤ ${toDuration(bound)}` : "longer";
}

/** @param {readonly PathCount[]} paths */
function toTable(paths) {
  const heads = ["Path", "Requests", ...outcomes.map((outcome) => outcomeWords[outcome]), "p50", "p95"];
  const rows = paths.map((count) => {
    const figures = [totalOf([count]), ...outcomes.map((outcome) => count[outcome])].map(toNumber);
    return [count.path, ...figures, toBound(count.seconds, 0.5), toBound(count.seconds, 0.95)];
  });
  return makeTable(heads, rows);
}

/** @param {readonly AdapterCount[]} adapters */
function toAdapterTable(adapters) {
  const heads = ["Adapter", "Attempts", "Failed", "Tokens read", "Tokens written", "Mean time", "Breaker"];
  const rows = adapters.map(({ name, state, turns, failed, input, output, seconds: { sum, count } }) => {
    const figures = [turns, failed, input, output].map(toNumber);
    const { words = state, sentence = "" } = breakers[state] ?? {};
    const breaker = make("span", { class: "state", title: sentence }, make("i", { class: `dot ${state}` }), words);
    return [name, ...figures, count === 0 ? "–" : toDuration(sum / count), breaker];
  });
  return makeTable(heads, rows);
}

/** @type {Readonly<Record<Outcome, string>>} */
const outcomeWords = { answered: "Answered", refused: "Refused", failed: "Failed", left: "Caller left" };

/** @type {Readonly<Record<string, { readonly words: string, readonly sentence: string }>>} */
const breakers = {
  closed: { words: "Accepts turns", sentence: "" },
  open: { words: "Paused", sentence: "Its circuit breaker is open, because it has failed too often." },
  "half-open": { words: "Probing", sentence: "It was down; one turn is let through as a probe." },
};
