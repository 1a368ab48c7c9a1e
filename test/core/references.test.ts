import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveReferences } from "../../src/core/conversation/references.ts";
import type { Reference } from "../../src/core/turn.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { makeTurn } from "../stores/making.ts";

test("a few bytes cannot name a long item so often that it becomes more than a body could be", async () => {
  const store = createMemoryStore();
  const id = `resp_${"a".repeat(48)}`;
  const turn = makeTurn({ id, output: [{ type: "message", role: "assistant", content: "x".repeat(1_000) }] });
  await store.commit({ turns: [turn] });
  const reference: Reference = { type: "reference", id: `msg_${"a".repeat(48)}0000` };
  const ask = { model: "m", itemsParam: "input", settings: { tools: [] }, stream: false, keep: "no" } as const;
  const resolve = (times: number) =>
    resolveReferences(store, turn.owner, { ...ask, items: Array.from({ length: times }, () => reference) }, 10_000);
  assert.equal((await resolve(9)).items.length, 9);
  await assert.rejects(resolve(10), { code: "body_too_large", status: 413, param: "input" });
});
