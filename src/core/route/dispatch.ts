/**
 * One turn on its way: asks the lanes of a path one after the other, with retries where safe, until one says a word.
 */
import { attempt } from "./attempt.ts";
import { type BreakerState, outcomeOf, type Pass } from "./breaker.ts";
import type { Delta, Deltas } from "../delta.ts";
import { type ErrorCode, GatewayError, toGatewayError } from "../errors.ts";
import type { Item } from "../item.ts";
import { type Lane, type RetrySettings, type LaneStep, windowOf } from "./lane.ts";
import type { Remark, Tell } from "../ports.ts";
import { adaptTurn } from "./adapt.ts";
import type { RouteParts } from "./route.ts";
import type { RoutedTurn, Turn } from "../turn.ts";

/** What a lane says: its first word with all before it, and the rest. */
interface Opened {
  readonly first: readonly Delta[];
  readonly deltas: Deltas;
}

/** Until a lane says its first word others may be asked. */
export async function* dispatchTurn(
  path: readonly LaneStep[],
  { shortening, ...turn }: RoutedTurn,
  signal: AbortSignal,
  tell: Tell,
  { now, random, wait, observer }: RouteParts,
): Deltas {
  let pass: Pass | undefined;
  let isOpen = false;

  /** What a lane says from its first word on, or why it says nothing; throws what no other lane could fix. */
  async function tryLane(step: LaneStep): Promise<Opened | GatewayError> {
    const { lane, breaker } = step;
    const isFirst = step === path[0];
    const began = now().getTime();
    for (let times = 0; ; times++) {
      try {
        return await askLess(step, times > 0);
      } catch (thrown) {
        const failure = toGatewayError(thrown);
        const isMendable = !signal.aborted && isLanesFault(failure.code, lane, turn.model, isFirst);
        if (isMendable) tell({ type: "tried", adapter: lane.name, code: failure.code });
        const isDown = breaker !== undefined && breaker.state().state !== "closed";
        const retry = isMendable && isFirst && !isDown ? lane.retry : undefined;
        // A clock that was set back leaves no more time to wait.
        const spentMs = Math.max(0, now().getTime() - began);
        const waitMs = retryMs(retry, failure, times, spentMs, random);
        if (waitMs !== undefined) {
          await wait(waitMs, signal);
          continue;
        }
        // Only the last attempt counts: the breaker counts turns, and a probe is asked once.
        pass?.(signal.aborted ? "unknown" : outcomeOf(failure.code), failure);
        if (isMendable) return failure;
        throw signal.aborted ? thrown : failure;
      }
    }
  }

  /** Asks a lane with less of the conversation, as long as it finds that too long. */
  async function askLess(step: LaneStep, isAgain: boolean): Promise<Opened> {
    if (shortening === undefined) return ask(step, turn.items, isAgain);
    const { name } = step.lane;
    // For the first lane the turn has been made to fit.
    let items = await shortening.itemsFor(name, step === path[0] ? undefined : windowOf(step.lane, turn.model));
    for (;;) {
      try {
        return await ask(step, items, isAgain);
      } catch (thrown) {
        const failure = toGatewayError(thrown);
        const less = signal.aborted ? undefined : await shortening.lessThan(items, name, failure);
        if (less === undefined) throw thrown;
        // It must be known to be up before it is asked again: its breaker may have let this through as a probe.
        pass?.(outcomeOf(failure.code), failure);
        items = less;
      }
    }
  }

  async function ask({ lane, breaker }: LaneStep, items: readonly Item[], isAgain: boolean): Promise<Opened> {
    signal.throwIfAborted();
    // What an adapter cannot accept is only worth telling if that adapter answers.
    const remarks: Remark[] = [];
    const collectRemark: Tell = (remark) => (isOpen ? tell(remark) : remarks.push(remark));
    const adapted = adaptTurn({ ...turn, items, model: lane.models.resolve(turn.model) }, lane.adapter, collectRemark);
    pass = breaker?.enter();
    if (breaker !== undefined && pass === undefined) throw breakerOpenError(lane, breaker.state(), now());
    tell({ type: "asked", adapter: lane.name, model: adapted.turn.model });
    if (isAgain) observer?.retried(lane.name);
    const stream = (asked: Turn) => lane.adapter.stream(asked, signal, collectRemark);
    const deltas = attempt(lane, adapted, stream, signal, observer);
    const first = await readFirst(deltas);
    pass?.(signal.aborted ? "unknown" : "answered");
    for (const remark of remarks) tell(remark);
    return { first, deltas };
  }

  const failures: GatewayError[] = [];
  for (const step of path) {
    const opened = await tryLane(step);
    if (!(opened instanceof GatewayError)) {
      isOpen = true;
      try {
        if (opened.first.length > 0) yield opened.first;
        return yield* opened.deltas;
      } finally {
        await opened.deltas.return();
      }
    }
    failures.push(opened);
    if (step !== path.at(-1)) observer?.fellBack(step.lane.name, opened);
  }
  throw chooseFailure(failures);
}

/** Everything up to the first word: what is only about the answer may come before, and the answer still fail. */
async function readFirst(deltas: Deltas): Promise<readonly Delta[]> {
  const early: Delta[] = [];
  for (;;) {
    const { done, value } = await deltas.next();
    if (done === true) return early;
    if (!value.every(isAbout)) return [...early, ...value];
    for (const delta of value) early.push(delta);
  }
}

function isAbout({ type }: Delta): boolean {
  return type === "notes" || type === "usage" || type === "message-extra";
}

function breakerOpenError({ name }: Lane, { opensUntil = 0, code }: BreakerState, now: Date): GatewayError {
  const failure = code === undefined ? "" : ` Its last failure: ${code}.`;
  return new GatewayError(
    "overloaded",
    // Without the seconds: a lasting problem is logged again when its words change.
    `The adapter '${name}' has failed too often, so its circuit breaker is open.${failure} Try again in a moment.`,
    { retryAfterSeconds: Math.max(1, Math.ceil((opensUntil - now.getTime()) / 1000)) },
  );
}

/** How long to wait before the lane is retried, if it should be. */
function retryMs(
  retry: RetrySettings | undefined,
  failure: GatewayError,
  times: number,
  spentMs: number,
  random: () => number,
): number | undefined {
  if (retry === undefined || !passingFaults.has(failure.code) || failure.isLasting) return undefined;
  const { times: maxTimes, baseMs, maxWaitMs } = retry;
  if (times >= maxTimes) return undefined;
  // Half random, so that turns that failed together do not retry together.
  const backOffMs = baseMs * 2 ** times * (0.5 + random() / 2);
  const waitMs = Math.max(backOffMs, (failure.retryAfterSeconds ?? 0) * 1000);
  return spentMs + waitMs <= maxWaitMs ? waitMs : undefined;
}

/** Faults that may pass in a moment. After a timeout, the caller has waited long enough. */
const passingFaults: ReadonlySet<ErrorCode> = new Set(["adapter_error", "adapter_rate_limit", "overloaded"]);

/** Faults of one lane another need not share: also a wrong key, garbage instead of an answer, a bug. */
const lanesFaults: ReadonlySet<ErrorCode> = new Set([
  ...passingFaults,
  "adapter_timeout",
  "adapter_protocol",
  "adapter_refused",
  "internal_error",
]);

function isLanesFault(code: ErrorCode, lane: Lane, model: string, isFirst: boolean): boolean {
  // The request was meant for the first lane; a fallback may well not support it.
  if (code === "unsupported_parameter") return !isFirst;
  // A missing model is the caller's mistake, unless the operator chose the name.
  if (code === "adapter_not_found") return !isFirst || lane.models.resolve(model) !== model;
  return lanesFaults.has(code);
}

/** The caller wanted the first lane and reads its failure; if that says to wait, the shortest wait of any lane. */
function chooseFailure(failures: readonly GatewayError[]): GatewayError {
  return failures.reduce((told, other) =>
    asksToWait(told) && asksToWait(other) && waitOf(other) < waitOf(told) ? other : told,
  );
}

function asksToWait({ code }: GatewayError): boolean {
  return code === "adapter_rate_limit" || code === "overloaded";
}

function waitOf({ retryAfterSeconds }: GatewayError): number {
  return retryAfterSeconds ?? Number.POSITIVE_INFINITY;
}
