/** How often a model that finds everything too long is asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import { createShortener } from "../../src/core/window/shorten.ts";

const refusal = new GatewayError("adapter_bad_request", "Too long.", { wireCode: "context_length_exceeded" });

test("a model is not asked without end, even if the same text is estimated at less and less", async () => {
  let counted = 0;
  const tokenCounter = async () => (text: string) => Math.max(1, text.length - counted++);
  const items: Item[] = Array.from({ length: 9 }, (_, index) => ({
    type: "message",
    role: index % 2 === 0 ? "user" : "assistant",
    content: `${index} ${"x".repeat(1_000)}`,
  }));
  const turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false };
  const shortening = createShortener({ tokenCounter }).begin(turn, "conv_1", () => {});
  const asked = [await shortening.itemsFor("a")];
  for (;;) {
    const less = await shortening.lessThan(asked.at(-1)!, "a", refusal);
    if (less === undefined) break;
    asked.push(less);
    assert.ok(asked.length < 20);
  }
  assert.equal(asked.at(-1)?.length, 1);
});
