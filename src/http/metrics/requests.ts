/** Metrics of requests by path: how they ended and how long they took. */
import { type Family, type Labels, toCounter, toHistogram } from "./family.ts";
import { createHistogram, type Histogram, turnBounds } from "./histogram.ts";

/** When the first byte of an answer's content was sent. */
export interface FirstByte {
  readonly ms: number;
  /** In a whole answer, it is nearly the last one too. */
  readonly isStreamed: boolean;
}

export interface RequestCounts {
  /**
   * Counts an answer that has ended. `path` is a route's, so there are few. `failedAs` is the status of a failure
   * inside a stream, which began with a good status.
   */
  count(path: string, status: number, ms: number, first?: FirstByte, failedAs?: number): void;
  read(): readonly Family[];
}

export function createRequestCounts(): RequestCounts {
  const byPath = new Map<string, Count>();
  return {
    count(path, status, ms, first, failedAs = status) {
      let count = byPath.get(path);
      if (count === undefined) byPath.set(path, (count = createCount()));
      count.statuses.set(status, (count.statuses.get(status) ?? 0) + 1);
      // An upgraded request lasts as long as its connection, whose turns are counted one by one.
      if (status < okStatus) return;
      (count.seconds[toOutcome(status < 400 ? failedAs : status)] ??= createHistogram(turnBounds)).observe(ms);
      if (first === undefined) return;
      (count.first[first.isStreamed ? "true" : "false"] ??= createHistogram(turnBounds)).observe(first.ms);
    },
    read: () => toFamilies([...byPath]),
  };
}

interface Count {
  readonly statuses: Map<number, number>;
  readonly seconds: { [outcome in Outcome]?: Histogram };
  /** By whether the answer was streamed. */
  readonly first: { true?: Histogram; false?: Histogram };
}

/** Prometheus sees no increase in a series that is new, so failures are counted from 0 once a path was asked for. */
function createCount(): Count {
  return { statuses: new Map(), seconds: { failed: createHistogram(turnBounds) }, first: {} };
}

/** A flood of instant refusals must not make answers look quick. */
type Outcome = "answered" | "refused" | "failed" | "left";

const okStatus = 200;
/** Status of a request whose caller left before the end. */
const callerLeft = 499;

function toOutcome(status: number): Outcome {
  if (status === callerLeft) return "left";
  if (status >= 500) return "failed";
  return status >= 400 ? "refused" : "answered";
}

function toFamilies(counts: readonly (readonly [path: string, count: Count])[]): readonly Family[] {
  return [
    toCounter(
      "portico_requests_total",
      "Requests answered.",
      counts.flatMap(([path, { statuses }]) =>
        Array.from(statuses, ([status, count]) => [{ path, status }, count] as const),
      ),
    ),
    toHistogram(
      "portico_request_seconds",
      "From a request's arrival to the end of its answer.",
      counts.flatMap(([path, { seconds }]) => label(seconds, (outcome) => ({ path, outcome }))),
    ),
    toHistogram(
      "portico_first_byte_seconds",
      "For turns: from the request's arrival to the first byte of its answer.",
      counts.flatMap(([path, { first }]) => label(first, (stream) => ({ path, stream }))),
    ),
  ];
}

function label(found: Readonly<Record<string, Histogram>>, toLabels: (name: string) => Labels) {
  return Object.entries(found).map(([name, histogram]) => [toLabels(name), histogram] as const);
}
