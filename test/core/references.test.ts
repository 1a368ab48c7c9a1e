import assert from "node:assert/strict";
import { test } from "node:test";
import { resolveReferences } from "../../src/core/conversation/references.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { SessionStore } from "../../src/core/store.ts";
import type { Reference } from "../../src/core/turn.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeTurn } from "../stores/making.ts";
import { createSlow, drain, open } from "./asking.ts";

test("references to a long item cannot expand a small request beyond the body limit", async () => {
  const store = createMemoryStore();
  const id = `resp_${"a".repeat(48)}`;
  const turn = makeTurn({ id, output: [{ type: "message", role: "assistant", content: "x".repeat(1_000) }] });
  await store.commit({ turns: [turn] });
  const reference: Reference = { type: "reference", id: `msg_${"a".repeat(48)}0000` };
  const ask = { model: "m", itemsParam: "input", settings: { tools: [] }, stream: false, keep: "no" } as const;
  const resolve = (times: number) =>
    resolveReferences(store, turn.owner, { ...ask, items: Array.from({ length: times }, () => reference) }, 10_000);
  assert.equal((await resolve(9)).length, 9);
  await assert.rejects(resolve(10), { code: "body_too_large", status: 413, param: "input" });
});

test("an id names an item of a turn's input, or of its output", async () => {
  const store = createMemoryStore();
  const digits = "a".repeat(48);
  const said = (content: string) => ({ type: "message", role: "user", content }) as const;
  const turn = makeTurn({ id: `resp_${digits}`, input: [said("asked"), said("in")], output: [said("out")] });
  await store.commit({ turns: [turn] });
  const items = [`msg_${digits}i0001`, `msg_${digits}0000`].map((id): Reference => ({ type: "reference", id }));
  const found = await resolveReferences(store, turn.owner, { items, itemsParam: "input" }, 10_000);
  assert.deepEqual(found, [said("in"), said("out")]);
});

test("an item is found even if its turn ends while the store looks for it", async () => {
  const inner = createMemoryStore();
  const { script, begun, go } = createSlow();
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const findTurn: SessionStore["findTurn"] = async (owner, turnId) => {
    const found = await inner.findTurn(owner, turnId);
    asked.resolve();
    await gate.promise;
    return found;
  };
  const { answer } = open(script, { ...inner, findTurn });
  const memo = () => "{}";
  const turnId = `resp_${"c".repeat(48)}`;
  const told = drain(await answer({}, { memo, turnId }));
  await begun;
  const naming = answer({ items: [{ type: "reference", id: `msg_${"c".repeat(48)}0000` }] }, { memo });
  await asked.promise;
  go();
  await told;
  gate.resolve();
  await drain(await naming);
});

test("a reference to an item of a running turn waits for it, but only for the same owner", async () => {
  const { script, begun, go } = createSlow();
  const { answer } = open(script);
  const memo = () => "{}";
  const told = drain(await answer({}, { memo, turnId: `resp_${"c".repeat(48)}` }));
  await begun;
  const ask = { items: [{ type: "reference", id: `msg_${"c".repeat(48)}0000` }] } as const;
  const naming = answer(ask, { memo });
  await assert.rejects(answer(ask, { memo, owner: "bob" }), { status: 404 });
  go();
  await told;
  await drain(await naming);
});

test("a caller that disconnects no longer waits for the turn that it refers to", async () => {
  const { script, begun, go } = createSlow();
  const { answer } = open(script);
  const memo = () => "{}";
  const told = drain(await answer({}, { memo, turnId: `resp_${"c".repeat(48)}` }));
  await begun;
  const leaving = new AbortController();
  const ask = { items: [{ type: "reference", id: `msg_${"c".repeat(48)}0000` }] } as const;
  const naming = answer(ask, { memo, signal: leaving.signal });
  leaving.abort(new GatewayError("client_closed", "gone"));
  await assert.rejects(naming, { code: "client_closed" });
  go();
  await told;
});
