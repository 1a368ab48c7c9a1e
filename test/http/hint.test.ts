import assert from "node:assert/strict";
import { test } from "node:test";
import { readHint } from "../../src/http/hint.ts";

const hints = [{ type: "header", name: "x-session-id" }, { type: "user" }] as const;

test("the first configured hint of a request names its session: a header one conversation, a user all of theirs", () => {
  const header = { hint: "header:x-session-id:garden", hintsAtTalk: true };
  assert.deepEqual(readHint(hints, { "x-session-id": "garden" }, "ann"), header);
  assert.deepEqual(readHint(hints, {}, "ann"), { hint: "user:ann", hintsAtTalk: false });
});

test("a hint without a value is ignored", () => {
  assert.deepEqual(readHint(hints, { "x-session-id": "" }, "ann"), { hint: "user:ann", hintsAtTalk: false });
  assert.deepEqual(readHint(hints, { "x-session-id": "" }, ""), { hint: undefined, hintsAtTalk: false });
});
