/** What an earlier request had too is not read again, which makes no difference. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { GatewayError } from "../../src/core/errors.ts";
import type { Protocol } from "../../src/core/ports.ts";
import { protocol as chat } from "./chat/script.ts";
import { createSeal } from "../../src/seal.ts";
import { protocol as responses, seal } from "./responses/script.ts";

const ids = fc.constantFrom("a", "b");
const names = fc.constantFrom("f", "g");
const text = fc.constantFrom("", "Hi", "Hello");
const calledFunction = fc.record({ name: names, arguments: text });

const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "user", "function", "nobody"), content: text, name: names }),
  fc.record({
    role: fc.constantFrom("user", "assistant"),
    content: fc.constantFrom([], [{ type: "text", text: "Hi" }]),
  }),
  fc.record(
    {
      role: fc.constant("assistant"),
      content: text,
      tool_calls: fc.array(
        fc.oneof(
          fc.record({ id: ids, function: calledFunction }),
          fc.record({ id: ids, custom: fc.record({ name: names, input: text }) }),
        ),
        { maxLength: 2 },
      ),
      function_call: calledFunction,
      refusal: text,
      other: text,
    },
    { requiredKeys: ["role"] },
  ),
  fc.record({ role: fc.constant("tool"), tool_call_id: ids, content: text }),
);

const item = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "user", "assistant", "nobody"), content: text }),
  fc.record({ type: fc.constantFrom("function_call", "tool_search_call"), call_id: ids, name: names, arguments: text }),
  fc.record({ type: fc.constant("function_call_output"), call_id: ids, output: text }),
  fc.record({ type: fc.constant("reasoning"), summary: fc.constant([{ text: "So." }]) }),
  fc.record({ type: fc.constantFrom("item_reference", "compaction_trigger", "web_search_call"), id: ids }),
);

const dialects: readonly (readonly [protocol: Protocol, element: fc.Arbitrary<object>])[] = [
  [chat, message],
  [responses, item],
];

for (const [protocol, element] of dialects) {
  const { listName } = protocol;
  test(`the rest of '${listName}' is read the same, whether or not its beginning was read before`, () => {
    let reused = 0;
    fc.assert(
      fc.property(fc.array(element, { minLength: 1, maxLength: 6 }), fc.nat(6), (list, length) => {
        const parse: Protocol["parse"] = (elements, ...others) =>
          protocol.parse({ model: "m", [listName]: elements }, ...others);
        const before = attempt(() => parse(list.slice(0, length), "default"));
        if (before instanceof GatewayError || before.isUnsettled === true) return;
        const earlier = { length: Math.min(length, list.length), items: before.ask.items };
        const alone = attempt(() => parse(list, "default"));
        const found = attempt(() => parse(list, "default", earlier));
        if (alone instanceof GatewayError || found instanceof GatewayError) {
          assert.deepEqual(
            [found, found instanceof GatewayError && found.param],
            [alone, alone instanceof GatewayError && alone.param],
          );
          return;
        }
        assert.deepEqual(found.ask.items, alone.ask.items);
        assert.deepEqual([found.ask.compacts, found.isUnsettled], [alone.ask.compacts, alone.isUnsettled]);
        if (found.ask.items[0] === earlier.items[0]) reused += 1;
      }),
      { numRuns: 1_000 },
    );
    assert.ok(reused > 100, `only ${reused} were known`);
  });
}

test("of several calls with one id, an output answers the last, whether or not they were read before", () => {
  const called = { name: "f", arguments: "{}" };
  const messages = [
    {
      role: "assistant",
      tool_calls: [
        { id: "a", custom: { name: "g", input: "" } },
        { id: "a", function: called },
      ],
    },
    { role: "tool", tool_call_id: "a", content: "Hi" },
  ];
  const { items } = chat.parse({ model: "m", messages: messages.slice(0, 1) }, "default").ask;
  for (const earlier of [undefined, { length: 1, items }]) {
    const output = chat.parse({ model: "m", messages }, "default", earlier).ask.items.at(-1);
    assert.equal(output?.type === "tool-output" && output.kind, "function");
  }
});

test("what another gateway sealed is read again, since its key may have come", () => {
  const carried = (sealed: string) => [{ type: "reasoning", summary: [], encrypted_content: sealed }];
  const isUnsettled = (sealed: string) =>
    responses.parse({ model: "m", input: carried(sealed) }, "default").isUnsettled;
  const elsewhere = createSeal(new Uint8Array(32).fill(9))("default");
  assert.equal(isUnsettled(elsewhere.seal("{}")), true);
  assert.equal(isUnsettled(seal.seal('{"text":"So."}')), false);
  assert.equal(isUnsettled("gAAAA of a model's own"), false);
});

function attempt<Found>(work: () => Found): Found | GatewayError {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown;
    throw thrown;
  }
}
