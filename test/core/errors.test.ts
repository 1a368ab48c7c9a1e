import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError, toWireError } from "../../src/core/errors.ts";

test("a message that quotes a long value keeps its beginning and its remedy", () => {
  const { message } = toWireError(new GatewayError("invalid_value", `Bad '${"x".repeat(3_000_000)}'. Use 'auto'.`));
  assert.ok(message.startsWith("Bad 'xxx") && message.endsWith("x'. Use 'auto'."));
  assert.ok(message.length < 5_000);
});

test("a param that contains a long key of the caller's is shortened too", () => {
  const { param } = toWireError(
    new GatewayError("invalid_value", "Bad.", { param: `metadata.${"x".repeat(3_000_000)}` }),
  );
  assert.ok(param?.startsWith("metadata.xxx") && param.length < 5_000);
});

test("an error without a param can be copied", () => {
  const { code, message, param } = new GatewayError("invalid_value", "Bad.");
  assert.equal(new GatewayError(code, message, { param } as unknown as { param?: string }).param, null);
});
