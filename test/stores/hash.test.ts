import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createKeyedHash } from "../../src/stores/hash.ts";

test("the hash of a name is cached", () => {
  const hash = createKeyedHash(randomBytes(32));
  assert.equal(hash("alice", "garden"), hash("alice", "garden"));
  assert.notDeepEqual(hash("alice", "garden"), hash("bob", "garden"));
});

test("a name as long as a request is not cached with its hash", () => {
  const hash = createKeyedHash(randomBytes(32));
  const name = "u".repeat(1_000);
  assert.deepEqual(hash("alice", name), hash("alice", name));
  assert.notEqual(hash("alice", name), hash("alice", name));
});
