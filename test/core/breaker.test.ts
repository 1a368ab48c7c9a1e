import assert from "node:assert/strict";
import { test } from "node:test";
import { type BreakerSettings, createBreaker, outcomeOf } from "../../src/core/route/breaker.ts";

/** A breaker that opens for a second after two failures, and its clock. */
function open(settings: BreakerSettings = { failures: 2, openMs: 1_000 }) {
  let time = 0;
  const breaker = createBreaker("main", settings, () => new Date(time));
  const fail = (times: number) => {
    for (let count = 0; count < times; count++) breaker.enter()!("failed");
  };
  return { breaker, fail, turn: (milliseconds: number) => void (time += milliseconds) };
}

test("consecutive failures open the breaker, and no request passes until its time is over", () => {
  const { breaker, fail, turn } = open();
  fail(1);
  assert.deepEqual(breaker.state(), { state: "closed", failures: 1, opensUntil: undefined });
  fail(1);
  assert.deepEqual(breaker.state(), { state: "open", failures: 2, opensUntil: 1_000 });
  turn(999);
  assert.equal(breaker.enter(), undefined);
  turn(1);
  assert.equal(breaker.state().state, "half-open");
  assert.notEqual(breaker.enter(), undefined);
});

test("setting the clock back does not keep the breaker open for longer", () => {
  const { breaker, fail, turn } = open();
  fail(2);
  turn(-3_600_000);
  assert.equal(breaker.state().state, "half-open");
  assert.notEqual(breaker.enter(), undefined);
  assert.equal(breaker.enter(), undefined);
});

test("the breaker opens after the configured number of failures, for the configured time", () => {
  const { breaker, fail, turn } = open({ failures: 5, openMs: 10_000 });
  fail(4);
  assert.equal(breaker.state().state, "closed");
  fail(1);
  turn(9_999);
  assert.equal(breaker.enter(), undefined);
  turn(1);
  assert.notEqual(breaker.enter(), undefined);
});

test("an answer resets the count of failures", () => {
  const { breaker, fail } = open();
  fail(1);
  breaker.enter()!("answered");
  fail(1);
  assert.deepEqual(breaker.state(), { state: "closed", failures: 1, opensUntil: undefined });
});

test("a half-open breaker lets one request through, and its answer closes the breaker", () => {
  const { breaker, fail, turn } = open();
  fail(2);
  turn(1_000);
  const pass = breaker.enter()!;
  assert.equal(breaker.state().state, "half-open");
  assert.equal(breaker.enter(), undefined);
  pass("answered");
  assert.deepEqual(breaker.state(), { state: "closed", failures: 0, opensUntil: undefined });
  assert.notEqual(breaker.enter(), undefined);
});

test("a half-open breaker opens again when the request it let through fails", () => {
  const { breaker, fail, turn } = open();
  fail(2);
  turn(1_000);
  breaker.enter()!("failed");
  assert.deepEqual(breaker.state(), { state: "open", failures: 3, opensUntil: 2_000 });
});

test("a caller that disconnects while the breaker is half open makes room for the next", () => {
  const { breaker, fail, turn } = open();
  fail(2);
  turn(1_000);
  breaker.enter()!("unknown");
  assert.equal(breaker.state().state, "half-open");
  breaker.enter()!("answered");
  assert.equal(breaker.state().state, "closed");
});

test("a caller that disconnects leaves a closed breaker closed", () => {
  const { breaker, fail } = open();
  fail(1);
  breaker.enter()!("unknown");
  assert.deepEqual(breaker.state(), { state: "closed", failures: 1, opensUntil: undefined });
});

test("a slow request in a half-open breaker does not block the others forever", () => {
  const { breaker, fail, turn } = open();
  fail(2);
  turn(1_000);
  const slow = breaker.enter()!;
  turn(1_000);
  breaker.enter()!("answered");
  assert.equal(breaker.state().state, "closed");
  slow("failed");
  assert.equal(breaker.state().failures, 0);
});

test("the outcome of a request that started before the breaker opened is ignored", () => {
  const { breaker, fail, turn } = open();
  const early = [breaker.enter()!, breaker.enter()!];
  fail(2);
  early[0]!("answered");
  assert.equal(breaker.state().state, "open");
  turn(1_000);
  early[1]!("failed");
  assert.deepEqual(breaker.state(), { state: "half-open", failures: 2, opensUntil: 1_000 });
});

test("a request counts only once", () => {
  const { breaker } = open();
  const pass = breaker.enter()!;
  pass("failed");
  pass("failed");
  assert.equal(breaker.state().failures, 1);
});

test("an upstream is down when it is unreachable, late or sends garbage, and up when it only refuses", () => {
  for (const code of ["adapter_error", "adapter_protocol", "adapter_timeout", "overloaded"] as const) {
    assert.equal(outcomeOf(code), "failed", code);
  }
  for (const code of ["adapter_bad_request", "adapter_refused", "adapter_not_found", "adapter_rate_limit"] as const) {
    assert.equal(outcomeOf(code), "answered", code);
  }
  for (const code of ["client_closed", "internal_error", "invalid_value", "unsupported_parameter"] as const) {
    assert.equal(outcomeOf(code), "unknown", code);
  }
});

test("the observer is notified once when the breaker opens, with the last failure, and when it closes", () => {
  let time = 0;
  const reported: string[] = [];
  const observer = {
    breakerOpened: (name: string, why: string) => void reported.push(`${name} rests: ${why}`),
    breakerClosed: (name: string) => void reported.push(`${name} is back`),
  };
  const breaker = createBreaker("main", { failures: 2, openMs: 1_000 }, () => new Date(time), observer);
  const fail = (message: string) => breaker.enter()!("failed", { code: "adapter_error", message });
  for (const why of ["one", "two"]) fail(why);
  assert.deepEqual(reported, ["main rests: two"]);
  time = 1_000;
  fail("three");
  time = 2_000;
  breaker.enter()!("answered");
  breaker.enter()!("answered");
  assert.deepEqual(reported, ["main rests: two", "main is back"]);
});
