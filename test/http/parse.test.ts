import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatewayError } from "../../src/core/errors.ts";
import { parseBody } from "../../src/http/parse.ts";

/** Makes any text long enough to be scanned before it is parsed. */
const padding = " ".repeat(64 * 1024);

function outcome(text: string, maxJsonDepth: number): unknown {
  try {
    return { value: parseBody(text, { maxJsonDepth }).value };
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError);
    return thrown.code;
  }
}

test("a long body is judged like a short one, whatever its strings contain", () => {
  const strings = fc.string({
    unit: fc.constantFrom("[", "{", "}", "]", '"', "\\", "a", "é", "\n", ":"),
    maxLength: 12,
  });
  const values = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "medium", withCrossShrink: true },
      strings,
      fc.integer(),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(strings, tie("value"), { maxKeys: 3 }),
    ),
  })).value;
  fc.assert(
    fc.property(values, fc.integer({ min: 0, max: 6 }), (value, maxJsonDepth) => {
      const text = JSON.stringify(value);
      assert.deepEqual(outcome(text + padding, maxJsonDepth), outcome(text, maxJsonDepth));
    }),
  );
});

test("the allowed depth passes, and one more level does not, in a short body and in a long one", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  for (const rest of ["", padding]) {
    assert.equal(outcome(nested(65) + rest, 64), "json_too_deep");
    assert.notEqual(outcome(nested(64) + rest, 64), "json_too_deep");
  }
});

test("megabytes of brackets are refused before they are parsed", (context) => {
  const { mock: parse } = context.mock.method(JSON, "parse");
  for (const text of ["[".repeat(20_000_000), `{"a":${"[".repeat(10_000_000)}${"]".repeat(10_000_000)}}`]) {
    assert.equal(outcome(text, 64), "json_too_deep");
  }
  assert.equal(parse.callCount(), 0);
});

test("a body with too many objects and arrays is refused before it is parsed", () => {
  const flat = (count: number) => `[${"{},".repeat(count - 2)}{}]`;
  assert.equal(outcome(flat(1_000_001), 64), "body_too_large");
  assert.notEqual(outcome(flat(200_000), 64), "body_too_large");
});

test("a body with too many members is refused before it is parsed; numbers and colons in text do not count", (context) => {
  const named = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":1`).join()}}`;
  const { mock: parse } = context.mock.method(JSON, "parse");
  assert.equal(outcome(named(600_000), 64), "body_too_large");
  assert.equal(parse.callCount(), 0);
  assert.notEqual(outcome(named(100_000), 64), "body_too_large");
  assert.notEqual(
    outcome(JSON.stringify(Array.from({ length: 1_000_000 }, (_, index) => index / 7)), 64),
    "body_too_large",
  );
  assert.notEqual(outcome(JSON.stringify([":".repeat(1_000_000)]), 64), "body_too_large");
});

test("a long text that is not JSON is reported as such", () => {
  for (const text of [`]]}}${padding}`, `{"a":"${padding}`, `{"a":"${padding}\\"`, padding]) {
    assert.equal(outcome(text, 64), "invalid_json");
  }
});
