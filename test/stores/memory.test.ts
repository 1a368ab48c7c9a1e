import assert from "node:assert/strict";
import { test } from "node:test";
import { beginningOf } from "../../src/stores/beginning.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { describeStore } from "./contract.ts";

describeStore("the memory store", (now) => createMemoryStore({ now }));

test("a long first input is not written out to be listed", () => {
  const long = { type: "message", role: "user", content: "x".repeat(100_000) } as const;
  const unread = {
    ...long,
    get content(): string {
      return assert.fail("it was read");
    },
  };
  assert.equal(beginningOf([long, unread]), undefined);
});
