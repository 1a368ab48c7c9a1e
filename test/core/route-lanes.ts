/** Lanes for tests: scripted adapters, a manual clock, and a record of everything that a route reports. */
import assert from "node:assert/strict";
import type { Delta } from "../../src/core/delta.ts";
import { type ErrorCode, GatewayError } from "../../src/core/errors.ts";
import type { BreakerSettings } from "../../src/core/route/breaker.ts";
import type { RetrySettings } from "../../src/core/route/lane.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import type { Adapter, Remark, Tell } from "../../src/core/ports.ts";
import { createRoute, type Lane } from "../../src/core/route/route.ts";
import type { RoutedTurn, Tool, Turn } from "../../src/core/turn.ts";

/**
 * What a lane does with each turn, in order: it may emit deltas without content, emits words, and may then fail, or
 * waits until it is aborted.
 */
type Act = {
  readonly give?: readonly Delta[];
  readonly say?: readonly string[];
  readonly fail?: unknown;
  readonly hang?: true;
};

interface Scripted extends Lane {
  readonly turns: Turn[];
  /** How often an answer was abandoned before its end. */
  left(): number;
}

/** Defaults where a test does not care. */
export const usual = {
  maxAnswerCharacters: 64 * 1024 * 1024,
  retry: { times: 2, baseMs: 200, maxWaitMs: 1_000 },
  breaker: { failures: 5, openMs: 10_000 },
} as const;

interface Rest extends Partial<Omit<Lane, "retry" | "breaker">> {
  readonly retry?: Partial<RetrySettings>;
  readonly breaker?: Partial<BreakerSettings>;
}

export function lane(name: string, acts: readonly Act[], { retry, breaker, ...rest }: Rest = {}): Scripted {
  const turns: Turn[] = [];
  let left = 0;
  async function* play(act: Act, signal: AbortSignal): AsyncGenerator<readonly Delta[], void, void> {
    let isOver = false;
    try {
      for (const delta of act.give ?? []) yield [delta];
      for (const text of act.say ?? []) yield text === "" ? [] : [{ type: "text", text }];
      if (act.hang) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(cut)));
      isOver = true;
      if (act.fail !== undefined) throw act.fail;
    } finally {
      if (!isOver) left++;
    }
  }
  const adapter: Adapter = {
    speaks: rest.adapter?.speaks,
    stream(turn, signal) {
      const act = acts[turns.push(turn) - 1];
      assert.ok(act, `the lane '${name}' is asked too often`);
      return play(act, signal);
    },
  };
  return {
    name,
    models: createModelNames({}),
    maxAnswerCharacters: usual.maxAnswerCharacters,
    ...rest,
    retry: retry && { ...usual.retry, ...retry },
    breaker: breaker && { ...usual.breaker, ...breaker },
    adapter,
    turns,
    left: () => left,
  };
}

export const gone = new GatewayError("client_closed", "gone");
/** How an adapter may report that it was aborted. */
export const cut = failure("adapter_error");

export function failure(code: ErrorCode, retryAfterSeconds?: number): GatewayError {
  return new GatewayError(code, code, { retryAfterSeconds });
}

/** A route whose clock advances by waiting and by hand. */
export function open(lanes: readonly Scripted[], random = 0) {
  let time = 0;
  const waits: number[] = [];
  const route = createRoute({
    lanes,
    defaultLane: lanes[0]!.name,
    now: () => new Date(time),
    random: () => random,
    wait: async (milliseconds) => {
      waits.push(milliseconds);
      time += milliseconds;
    },
  });
  return { route, waits, advance: (milliseconds: number) => void (time += milliseconds) };
}

export type Opened = ReturnType<typeof open>;

export function toTurn(tools: readonly Tool[] = []): Turn {
  return { id: "resp_1", model: "asked", items: [], settings: { tools }, stream: true };
}

/** Everything that a caller receives of a turn. */
export async function receive({ route }: Opened, turn: RoutedTurn = toTurn(), signal = new AbortController().signal) {
  const words: string[] = [];
  const remarks: Remark[] = [];
  let error: GatewayError | undefined;
  try {
    const listen: Tell = (remark) => void (remark.type === "asked" || remarks.push(remark));
    for await (const batch of route.stream(turn, signal, listen)) {
      for (const delta of batch) if (delta.type === "text") words.push(delta.text);
    }
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError);
    error = thrown;
  }
  return { words, error, tried: remarks.flatMap((each) => (each.type === "tried" ? [each] : [])), remarks };
}

export function tried(adapter: string, ...codes: ErrorCode[]): Remark[] {
  return codes.map((code) => ({ type: "tried", adapter, code }));
}
