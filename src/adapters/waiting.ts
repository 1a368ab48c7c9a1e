/** Waits for an answer only as long as its caller stays and the limits allow: a server's, or that of code of others. */
import type { Reply } from "../core/adapter.ts";
import { callerLeft, GatewayError } from "../core/errors.ts";
import type { Delta } from "../core/event.ts";
import type { Turn } from "../core/turn.ts";

type Limit = "first_byte" | "idle" | "total";

/** As configured; absent: any time. The total is for answers that are not streamed, instead of the others. */
export type Timeouts = { readonly [Key in Limit as `${Key}_timeout_ms`]?: number | undefined };

/** `start` gets a signal that aborts when it is too late or not wanted any more. Nobody waits for its cleaning up. */
export async function openSource(
  who: string,
  start: (signal: AbortSignal) => AsyncIterator<readonly Delta[], void>,
  { stream }: Turn,
  timeouts: Timeouts,
  caller: AbortSignal,
): Promise<Reply> {
  caller.throwIfAborted();
  const inner = new AbortController();
  const batches = start(inner.signal);
  const deadline = createDeadline(who, timeouts, stream, end);
  let silence: "first_byte" | "idle" = "first_byte";
  let isOver = false;
  let failure: unknown;
  let giveUp: ((reason: unknown) => void) | undefined;

  const leave = (): void => end(caller.reason);

  function end(reason?: unknown): void {
    if (isOver) return;
    isOver = true;
    failure = reason;
    deadline.stop();
    caller.removeEventListener("abort", leave);
    if (reason === undefined) return;
    inner.abort();
    void batches.return?.().catch(() => {});
    giveUp?.(reason);
  }

  async function next(): Promise<readonly Delta[] | undefined> {
    if (isOver && failure === undefined) return undefined;
    if (isOver) throw failure;
    deadline.expect(silence);
    try {
      const step = await new Promise<IteratorResult<readonly Delta[], void>>((resolve, reject) => {
        giveUp = reject;
        batches.next().then(resolve, reject);
      });
      silence = "idle";
      deadline.pause();
      if (step.done !== true) return step.value;
      end();
      return undefined;
    } catch (thrown) {
      end(thrown);
      throw failure;
    }
  }

  caller.addEventListener("abort", leave);
  return toReply(next, () => end(callerLeft()));
}

/** Resolves with the first word and all before it: what is only about the answer may come, and the answer still fail. */
export async function toReply(next: Reply["next"], close?: () => void): Promise<Reply> {
  const first: Delta[] = [];
  for (let batch = await next(); batch !== undefined; batch = await next()) {
    for (const delta of batch) first.push(delta);
    if (batch.some(isWord)) break;
  }
  return { first, next, ...(close && { close }) };
}

function isWord({ type }: Delta): boolean {
  return type !== "notes" && type !== "usage" && type !== "message-extra" && type !== "finish";
}

/** The limits of one answer on one timer: an arriving byte costs a timestamp, not a timer. */
export interface Deadline {
  /** From now on; of an answer that is not streamed the total counts, from the first call on. */
  expect(limit: "first_byte" | "idle"): void;
  /** Another limit instead, however the answer comes. */
  enter(limit: Limit, limitMs: number): void;
  /** Silence counts only while somebody listens. */
  pause(): void;
  stop(): void;
}

export function createDeadline(
  who: string,
  timeouts: Timeouts,
  stream: boolean,
  late: (lateness: GatewayError) => void,
): Deadline {
  const { first_byte_timeout_ms: first_byte, idle_timeout_ms: idle, total_timeout_ms: total } = timeouts;
  const limits = { first_byte, idle, total };
  let current: Limit | undefined;
  let currentMs = 0;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Infinity;

  function enter(limit: Limit, limitMs: number): void {
    current = limit;
    currentMs = limitMs;
    since = performance.now();
    // A timer that fires too early looks again; only one that would fire too late is replaced.
    if (since + limitMs < firesAt) arm();
  }

  function arm(): void {
    clearTimeout(timer);
    firesAt = since + currentMs;
    timer = setTimeout(look, Math.max(1, Math.ceil(firesAt - performance.now())));
  }

  function look(): void {
    firesAt = Infinity;
    if (current === undefined) return;
    if (performance.now() < since + currentMs) return arm();
    // Timers run before sockets: after a long tick what came in time is still unread.
    const seen = since;
    setImmediate(() => {
      if (current !== undefined && since === seen) late(toLateness(who, current, currentMs));
      else if (current !== undefined) arm();
    });
  }

  function stop(): void {
    current = undefined;
    clearTimeout(timer);
    firesAt = Infinity;
  }

  return {
    enter,
    stop,
    expect(silence) {
      if (!stream && current === "total") return;
      const limit = stream ? silence : "total";
      const limitMs = limits[limit];
      if (limitMs !== undefined) enter(limit, limitMs);
    },
    pause() {
      if (stream) stop();
    },
  };
}

const missed = { first_byte: "said nothing", idle: "fell silent", total: "did not finish" } as const;

function toLateness(who: string, limit: Limit, limitMs: number): GatewayError {
  const message = `Timed out: ${who} ${missed[limit]} within ${limitMs} ms (${limit}_timeout_ms).`;
  return new GatewayError("adapter_timeout", message, { wireCode: `adapter_${limit}_timeout` });
}
