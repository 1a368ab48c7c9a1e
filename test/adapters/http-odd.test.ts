/** What the upstream client makes of odd codes and odd pieces, without a socket. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toNetworkFailure } from "../../src/adapters/http/failure.ts";
import { readWhole } from "../../src/adapters/http/whole.ts";

test("a failure whose code is a word that every object knows is told like any unknown one", () => {
  const failure = toNetworkFailure(Object.assign(new Error("x"), { code: "constructor" }), "127.0.0.1:80");
  assert.equal(failure.message, "The upstream at 127.0.0.1:80 cannot be reached (constructor).");
});

test("an answer may arrive in more pieces at once than a call can have arguments", async () => {
  const piece = Buffer.from("x");
  const batches = [Array.from({ length: 250_000 }, () => piece)];
  const pull = () => Promise.resolve(batches.shift());
  assert.equal((await readWhole({ status: 200, headers: {}, pull, leave() {} }, 1_000_000)).length, 250_000);
});
