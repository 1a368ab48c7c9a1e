/** How often a model that finds everything too long is asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import { createShortener } from "../../src/core/window/shorten.ts";

test("a model is not asked without end, even if the same text is estimated at less and less", async () => {
  let asked = 0;
  let counted = 0;
  const tokenCounter = async () => (text: string) => Math.max(1, text.length - counted++);
  const refuse = () => {
    asked += 1;
    throw new GatewayError("adapter_bad_request", "It is too long.", {
      wireCode: asked > 20 ? "asked without end" : "context_length_exceeded",
    });
  };
  const items: Item[] = Array.from({ length: 9 }, (_, index) => ({
    type: "message",
    role: index % 2 === 0 ? "user" : "assistant",
    content: `${index} ${"x".repeat(1_000)}`,
  }));
  const turn = { id: "resp_1", model: "m", items, settings: { tools: [] }, stream: false };
  const seen: number[] = [];
  const answer = createShortener({ tokenCounter }).ask(turn, undefined, refuse, ({ length }) => seen.push(length));
  await assert.rejects(Array.fromAsync(answer), { wireCode: "context_length_exceeded" });
  assert.equal(seen.at(-1), 1);
});
