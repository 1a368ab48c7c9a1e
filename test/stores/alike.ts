/**
 * Random operations, applied to a memory store and to a pair of other stores, which must answer and contain the same.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { GatewayError } from "../../src/core/errors.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createMemoryStore } from "./memory.ts";
import { lookAround } from "./alike-reading.ts";
import { stepKinds } from "./alike-steps.ts";
import { owners, toChance, type World } from "./alike-world.ts";
import { gather, replay } from "./making.ts";

const seed = Number(process.env["PORTICO_SEED"] || 20_261_116);

/** Shrinking a failure stops after this many attempts; further ones are skipped, and pass. */
const maxShrinks = 500;

interface StoreOptions {
  readonly now: () => Date;
  readonly maxRecentSize: number | undefined;
}

/** Two stores of the same turns. Called again for each run. */
type OpenPair = (options: StoreOptions) => Promise<readonly SessionStore[]> | readonly SessionStore[];

/** Returns how often each kind of operation was done. */
export async function checkAlike(numRuns: number, openPair: OpenPair): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  let [isFailed, shrinksLeft] = [false, maxShrinks];
  const isAlike = fc.asyncProperty(stepsArbitrary, recentArbitrary, async (steps, maxRecentSize) => {
    if (isFailed && (shrinksLeft -= 1) < 0) return;
    const clock = { time: Date.parse("2026-02-03T04:05:06.789Z") };
    const now = () => new Date(clock.time);
    const memory = createMemoryStore({ now });
    const pair = await openPair({ now, maxRecentSize });
    try {
      // With one key for all of their hints, an archive can be imported into each of them.
      await pair[0]?.importRecords(replay(await gather(memory.exportRecords())));
      await live(steps, clock, memory, pair, counts);
    } catch (thrown) {
      isFailed = true;
      throw thrown;
    } finally {
      await Promise.all([memory, ...pair].map((store) => store.close()));
    }
  });
  const details = await fc.check(isAlike, { seed, numRuns });
  if (details.failed) {
    const { errorInstance, numRuns: run, numShrinks } = details;
    const story = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
    assert.fail(`PORTICO_SEED=${seed}, run ${run}, shrunk ${numShrinks} times:\n${story}`);
  }
  return counts;
}

/** An operation that can be reported, shrunk and repeated. */
interface Step {
  readonly kind: string;
  readonly owner: string;
  readonly waitMs: number;
  /** Which of the two stores it is applied to. Usually the same one, so that this has something to cache. */
  readonly at: number;
  /** The source of all other random choices. */
  readonly salt: number;
}

const kindArbitrary = fc.oneof(
  ...Object.entries(stepKinds).map(([kind, { weight }]) => ({ arbitrary: fc.constant(kind), weight: weight * 10 })),
);

const stepsArbitrary = fc.array(
  fc.record<Step>({
    kind: kindArbitrary,
    owner: fc.constantFrom(...owners),
    waitMs: fc.constantFrom(0, 1, 1_000, 60_000, 3_600_000, 86_400_000),
    at: fc.constantFrom(0, 0, 0, 1),
    salt: fc.noShrink(fc.noBias(fc.maxSafeNat())),
  }),
  { minLength: 1, maxLength: 200, size: "max" },
);

/** Room for two turns, or for all. */
const recentArbitrary = fc.constantFrom(3_000, undefined);

async function live(
  steps: readonly Step[],
  clock: { time: number },
  memory: SessionStore,
  pair: readonly SessionStore[],
  counts: Map<string, number>,
): Promise<void> {
  const story: (() => string)[] = [];
  let [ids, at] = [0, 0];
  const world: World = {
    now: () => new Date(clock.time),
    fresh: (kind) => `${kind}_${(ids += 1)}`,
    turns: new Map(),
    sessions: [],
    archive: undefined,
    async ask<T>(words: string, act: (store: SessionStore) => Promise<T>) {
      let expected: Answer<T> = {};
      const place = `${world.now().toISOString()}, store ${at + 1}`;
      story.push(() => `${place}: ${words} → ${JSON.stringify(expected)}`.slice(0, 300));
      try {
        const store = pair[at];
        assert.ok(store);
        expected = await answerOf(act(memory));
        assert.deepEqual(await answerOf(act(store)), expected);
        return expected.answer;
      } catch (thrown) {
        const told = story.slice(-30).map((line) => line());
        throw new Error(`${told.join("\n")}\n${String(thrown)}`, { cause: thrown });
      }
    },
  };
  for (const { kind, waitMs, owner, salt, ...step } of steps) {
    clock.time += waitMs;
    at = step.at;
    const before = story.length;
    await stepKinds[kind]?.act(world, toChance(owner, salt));
    if (story.length > before) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  await lookAround(world, (store) => (at = store));
}

interface Answer<T> {
  readonly answer?: T;
  readonly refusal?: string;
}

/** A refusal is an answer too, and any other error is a fault. */
async function answerOf<T>(asked: Promise<T>): Promise<Answer<T>> {
  try {
    return { answer: await asked };
  } catch (thrown) {
    if (thrown instanceof GatewayError) return { refusal: `${thrown.code}: ${thrown.message}` };
    throw thrown;
  }
}
