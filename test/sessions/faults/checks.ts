/** What holds whatever was done and whatever failed meanwhile. */
import assert from "node:assert/strict";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Caller, GatewayLimits } from "../../../src/core/gateway.ts";
import type { Item } from "../../../src/core/item.ts";
import type { Ask } from "../../../src/core/turn.ts";
import type { How } from "./trouble.ts";
import { type Outcome, user, type World } from "./world.ts";

/** What callers do with a gateway. */
export interface Scene {
  readonly limits?: Partial<GatewayLimits>;
  /** Some of its turns fail even without a fault. */
  readonly hasFailures?: boolean;
  /** Returns what must be checked when everything works again. */
  play(world: World): Promise<Check>;
}

export type Check = () => Promise<void>;

export const memo = () => "{}";
export const hint = "garden";
export const key = { key: "k1", fingerprint: "f1", param: "Idempotency-Key" };

export function inSession(word: string): Pick<Ask, "items" | "keep"> {
  return { items: [user(word)], keep: "in-session" };
}

export async function mustAnswer(world: World, ask: Partial<Ask>, caller: Partial<Caller> = {}): Promise<Outcome> {
  const outcome = await world.ask(ask, caller);
  assert.equal(outcome.status, "completed", `a turn without any obstacle ended with ${outcome.code}`);
  return outcome;
}

/** The session is answered, and each of its stored turns has seen everything before it, once and in order. */
export async function checkSession(world: World): Promise<void> {
  await mustAnswer(world, inSession("next"), { hint });
  const { stored, outcomes, seen, said } = world;
  const before: Item[] = [];
  for (const id of stored) {
    before.push(...(outcomes.find((outcome) => outcome.id === id)?.items ?? []));
    assert.deepEqual(withoutOpenCalls(seen(id)), withoutOpenCalls(before), `what the model saw for ${id}`);
    before.push(...said(id));
  }
}

function withoutOpenCalls(items: readonly Item[]): readonly Item[] {
  const answered = new Set(items.flatMap((item) => (item.type === "tool-output" ? [item.callId] : [])));
  return items.filter((item) => item.type !== "tool-call" || answered.has(item.callId));
}

/** Nobody waits, what was reported is what is stored, and nothing runs forever. */
export async function checkAll(world: World): Promise<void> {
  const { gateway, outcomes, stored, lost, alone } = world;
  assert.deepEqual(gateway.load(), { waiting: 0, live: 0 }, "somebody waits, or a turn still runs");
  assert.equal(world.stays(), 0, "a slot is leaked, or released twice");
  assert.equal(new Set(stored).size, stored.length, "a turn is stored twice");
  for (const outcome of outcomes) {
    if (outcome.about !== undefined && outcome.about.id !== outcome.id) continue;
    const isStored = stored.includes(outcome.id);
    if (outcome.outlivesCaller && outcome.about !== undefined && !outcome.isRepeated) {
      const isReceived = outcome.status !== "begun" && outcome.status !== "left";
      const times = alone.filter((id) => id === outcome.id).length;
      // A caller that disconnects just when it ends may still receive the end.
      if (!(isReceived && outcome.hasDisconnected))
        assert.equal(
          times,
          isReceived ? 0 : 1,
          `the end of ${outcome.id}, reported as ${outcome.status}, reaches its caller or the observer`,
        );
    }
    const how = `${outcome.id} was reported as ${outcome.status}, with ${outcome.code}`;
    if (outcome.status === "completed" && outcome.isWanted) assert.ok(isStored, `${how}, and is not stored`);
    if (isNothing(outcome)) assert.ok(!isStored || lost.has(outcome.id), `${how}, and is stored`);
  }
  checkFailures(world);
  await checkRunning(world);
}

/** Callers see internal errors only where something broke. */
function checkFailures({ failures, outcomes, struck }: World): void {
  if (struck.some(({ how }) => how === "breaks")) return;
  for (const failure of failures) assert.ok(failure instanceof GatewayError, `unexpected error: ${String(failure)}`);
  for (const { id, code } of outcomes) assert.notEqual(code, "internal_error", `the end of ${id}`);
}

function isNothing({ status }: Outcome): boolean {
  return status === "failed" || status === "cancelled" || status === "thrown";
}

/** Only the store itself can be the reason that a turn was not ended. */
async function checkRunning({ store, struck }: World): Promise<void> {
  const couldNotEnd = struck.some(({ name, how }) => how === "is away from then on" || (name === "end" && fails(how)));
  if (couldNotEnd) return;
  for await (const record of store.exportRecords()) {
    if (record.type === "turn") assert.notEqual(record.turn.status, "running", `${record.turn.id} runs forever`);
  }
}

function fails(how: How): boolean {
  return !harmless.has(how);
}

/** A delay, or a caller that disconnects, costs nobody else an answer. */
export function checkOthers({ outcomes, struck }: World): void {
  const isSlow = struck.some(({ how }) => how === "is slow to answer");
  for (const { id, status, code, hasDisconnected } of outcomes) {
    if (hasDisconnected || status === "begun") continue;
    // A request placed by what had changed when the slow store answered is asked to retry.
    if (isSlow && code === "session_busy") continue;
    assert.equal(status, "completed", `${id} ended with ${code}, though nothing failed`);
  }
}

/** What is not a failure, and a caller's actions that affect nobody else. */
export const harmless: ReadonlySet<How> = new Set<How>([
  "is slow to begin",
  "is slow to answer",
  "says nothing",
  "aborts",
  "returns",
  "returns while it waits",
  "aborts and returns",
]);
