import assert from "node:assert/strict";
import { test } from "node:test";
import { readIdempotencyKey } from "../../src/http/idempotency.ts";

const read = (key: string, path = "/v1/responses", hint: string | undefined = "user:ann", body = "{}") =>
  readIdempotencyKey({ "idempotency-key": key }, path, hint, Buffer.from(body));

test("an idempotency key has 1 to 255 characters", () => {
  assert.equal(read("k".repeat(255))?.key.length, 255);
  const refusal = { code: "invalid_value", param: "Idempotency-Key" };
  for (const key of ["", "k".repeat(256)]) assert.throws(() => read(key), refusal);
});

test("requests are the same if path, session and body are the same", () => {
  const first = read("k")?.fingerprint;
  assert.equal(read("k")?.fingerprint, first);
  const others = [
    read("k", "/v1/chat/completions"),
    read("k", "/v1/responses", "user:bob"),
    read("k", "/v1/responses", "user:ann", "[]"),
  ];
  for (const other of others) assert.notEqual(other?.fingerprint, first);
});

test("the stored fingerprint of a request depends on its key", () => {
  assert.notEqual(read("k1")?.fingerprint, read("k2")?.fingerprint);
});
