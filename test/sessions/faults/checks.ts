/** What holds whatever was done and whatever went wrong meanwhile. */
import assert from "node:assert/strict";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Caller, GatewayLimits } from "../../../src/core/gateway.ts";
import type { Item } from "../../../src/core/item.ts";
import type { Ask } from "../../../src/core/turn.ts";
import type { How } from "./trouble.ts";
import { type Told, user, type World } from "./world.ts";

/** What callers do with a gateway. */
export interface Scene {
  readonly limits?: Partial<GatewayLimits>;
  /** Some of its turns come to nothing though nothing goes wrong. */
  readonly isUnquiet?: boolean;
  /** Gives what is to be checked when all is well again. */
  play(world: World): Promise<Check>;
}

export type Check = () => Promise<void>;

export const memo = () => "{}";
export const hint = "garden";
export const key = { key: "k1", fingerprint: "f1", param: "Idempotency-Key" };

export function inSession(word: string): Pick<Ask, "items" | "keep"> {
  return { items: [user(word)], keep: "in-session" };
}

export async function mustAnswer(world: World, ask: Partial<Ask>, caller: Partial<Caller> = {}): Promise<Told> {
  const told = await world.ask(ask, caller);
  assert.equal(told.status, "completed", `a turn that nothing stood in the way of ended with ${told.code}`);
  return told;
}

/** The session is answered, and each of its turns that is kept has seen all before it, once and in order. */
export async function checkSession(world: World): Promise<void> {
  await mustAnswer(world, inSession("next"), { hint });
  const { kept, tolds, seen, said } = world;
  const before: Item[] = [];
  for (const id of kept) {
    before.push(...(tolds.find((told) => told.id === id)?.items ?? []));
    assert.deepEqual(withoutOpenCalls(seen(id)), withoutOpenCalls(before), `what the model was shown for ${id}`);
    before.push(...said(id));
  }
}

function withoutOpenCalls(items: readonly Item[]): readonly Item[] {
  const answered = new Set(items.flatMap((item) => (item.type === "tool-output" ? [item.callId] : [])));
  return items.filter((item) => item.type !== "tool-call" || answered.has(item.callId));
}

/** Nobody waits, what was told is what is kept, and nothing runs for ever. */
export async function checkAll(world: World): Promise<void> {
  const { gateway, tolds, kept, lost, alone } = world;
  assert.deepEqual(gateway.load(), { waiting: 0, live: 0 }, "somebody waits, or goes on");
  assert.equal(world.stays(), 0, "a place is taken by nobody, or given back twice");
  assert.equal(new Set(kept).size, kept.length, "a turn is kept twice");
  for (const told of tolds) {
    if (told.about !== undefined && told.about.id !== told.id) continue;
    const isKept = kept.includes(told.id);
    if (told.goesOn && told.about !== undefined && !told.isRepeated) {
      const isHeard = told.status !== "begun" && told.status !== "left";
      const times = alone.filter((id) => id === told.id).length;
      // Who leaves just when it ends may hear it all the same.
      if (!(isHeard && told.hasLeft))
        assert.equal(times, isHeard ? 0 : 1, `how ${told.id}, told as ${told.status}, ended is told`);
    }
    const how = `${told.id} was told as ${told.status}, with ${told.code}`;
    if (told.status === "completed" && told.isWanted) assert.ok(isKept, `${how}, and is not kept`);
    if (isNothing(told)) assert.ok(!isKept || lost.has(told.id), `${how}, and is kept`);
  }
  checkFailures(world);
  await checkRunning(world);
}

/** Callers are told of our own mistakes only where something broke. */
function checkFailures({ failures, tolds, struck }: World): void {
  if (struck.some(({ how }) => how === "breaks")) return;
  for (const failure of failures) assert.ok(failure instanceof GatewayError, `this was thrown: ${String(failure)}`);
  for (const { id, code } of tolds) assert.notEqual(code, "internal_error", `how ${id} ended`);
}

function isNothing({ status }: Told): boolean {
  return status === "failed" || status === "cancelled" || status === "thrown";
}

/** Only the store itself can be why a turn was not ended. */
async function checkRunning({ store, struck }: World): Promise<void> {
  const couldNotEnd = struck.some(({ name, how }) => how === "is away from then on" || (name === "end" && fails(how)));
  if (couldNotEnd) return;
  for await (const record of store.exportRecords()) {
    if (record.type === "turn") assert.notEqual(record.turn.status, "running", `${record.turn.id} runs for ever`);
  }
}

function fails(how: How): boolean {
  return !harmless.has(how);
}

/** Whatever takes longer, or leaves, costs nobody else its answer. */
export function checkOthers({ tolds, struck }: World): void {
  const isSlow = struck.some(({ how }) => how === "is slow to answer");
  for (const { id, status, code, hasLeft } of tolds) {
    if (hasLeft || status === "begun") continue;
    // Who was placed by what was no longer so when the store had said it is asked to come again.
    if (isSlow && code === "session_busy") continue;
    assert.equal(status, "completed", `${id} ended with ${code}, though nothing failed`);
  }
}

/** What is no failure, and of the caller what concerns nobody else. */
export const harmless: ReadonlySet<How> = new Set<How>([
  "is slow to begin",
  "is slow to answer",
  "says nothing",
  "aborts",
  "returns",
  "returns while it waits",
  "aborts and returns",
]);
