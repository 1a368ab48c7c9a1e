/** Whatever clients send, each turn hangs where the rule says, and the model sees what the rule says. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { kindsArbitrary, stepArbitrary } from "./clients.ts";
import { checkHistory, openStage } from "./histories.ts";
import { openKillableStage } from "./killed.ts";

const isLong = process.env["PORTICO_LONG"] !== undefined;
const seed = Number(process.env["PORTICO_SEED"] ?? (isLong ? Date.now() % 1_000_000 : 1));
const numRuns = Number(process.env["PORTICO_RUNS"] ?? (isLong ? 20_000 : 300));

const histories = fc.tuple(kindsArbitrary, fc.array(stepArbitrary, { minLength: 3, maxLength: 14 }));

test("in any history of any clients, what the model sees is what the rule says", async (context) => {
  context.diagnostic(`PORTICO_SEED=${seed} PORTICO_RUNS=${numRuns}`);
  const stage = await openStage(context);
  const counts: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(histories, async ([kinds, steps]) => checkHistory(stage, kinds, steps, counts)),
    { seed, numRuns, endOnFailure: !isLong },
  );
  for (const told of ["new", "continued", "matched", "forked", "foreign", "refused"])
    assert.ok(
      (counts[told] ?? 0) > numRuns / 10,
      `'${told}' was seen ${counts[told] ?? 0} times: ${JSON.stringify(counts)}`,
    );
});

/** Each history is killed once, at a place of its own. */
const killed = fc
  .tuple(kindsArbitrary, fc.array(stepArbitrary, { minLength: 4, maxLength: 8 }), fc.nat(7))
  .map(([kinds, steps, at]) => {
    const calm = steps.map((step) => (step.fate === "restart" ? { ...step, fate: "kept" as const } : step));
    return [kinds, calm.with(at % calm.length, { ...calm[at % calm.length]!, fate: "crash" as const })] as const;
  });

test("a turn in which the gateway is killed came wholly or not at all, and all goes on by the rule", async (context) => {
  const runs = isLong ? 200 : 8;
  context.diagnostic(`PORTICO_SEED=${seed}`);
  const stage = await openKillableStage(context);
  const counts: Record<string, number> = {};
  await fc.assert(
    fc.asyncProperty(killed, async ([kinds, steps]) => checkHistory(stage, kinds, steps, counts)),
    { seed, numRuns: runs, endOnFailure: true },
  );
  assert.ok(counts["killed, kept"] && counts["killed, lost"], `both outcomes were seen: ${JSON.stringify(counts)}`);
});
