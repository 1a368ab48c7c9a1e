/** How often a model that finds a conversation too long is asked, and with how much. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { GatewayError, type ToldWindow } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import type { Settings } from "../../src/core/turn.ts";
import { createShortener } from "../../src/core/window/shorten.ts";

/** Each has a hundred tokens. */
const said = (count: number): Item[] =>
  Array.from({ length: count }, (_, index) => ({
    type: "message",
    role: index % 2 === 0 ? "user" : "assistant",
    content: "x".repeat(96),
  }));

interface Server {
  readonly items: readonly Item[];
  readonly settings?: Partial<Settings>;
  readonly tokenCounter?: () => Promise<(text: string) => number>;
  /** How many items it accepts. */
  readonly takes?: number;
  /** What it says when it refuses. */
  readonly says?: ToldWindow;
}

/** How many items a server was asked with, each time until it accepted them, or a refusal stood. */
async function ask({ items, settings, tokenCounter = async () => countText, takes = 0, says }: Server) {
  const turn = { id: "resp_1", model: "m", items, settings: { tools: [], ...settings }, stream: false };
  const shortening = createShortener({ tokenCounter }).begin(turn, "conv_1", () => {});
  const refusal = toRefusal(says);
  const asked: number[] = [];
  let next: readonly Item[] | undefined = await shortening.itemsFor("a", undefined);
  while (next !== undefined) {
    asked.push(next.length);
    if (next.length <= takes) return { asked, isRefused: false };
    next = await shortening.lessThan(next, "a", refusal);
  }
  return { asked, isRefused: true };
}

function toRefusal(contextWindow: ToldWindow | undefined): GatewayError {
  return new GatewayError("adapter_bad_request", "It is too long.", {
    wireCode: "context_length_exceeded",
    contextWindow,
  });
}

const countText = (text: string) => text.length;

suite("a model that finds a conversation too long is not asked without end", () => {
  test("even if the conversation is not what is too long", async () => {
    const { asked } = await ask({ items: said(4_001) });
    assert.equal(asked.length, 6);
    assert.equal(asked.at(-1), 1);
  });

  test("even if the same text is estimated at less and less", async () => {
    let counted = 0;
    const { asked } = await ask({
      items: said(9),
      tokenCounter: async () => (text) => Math.max(1, text.length - counted++),
    });
    assert.equal(asked.at(-1), 1);
  });
});

test("what an adapter has found too long is known of that adapter alone", async () => {
  const turn = { id: "resp_1", model: "m", items: said(9), settings: { tools: [] }, stream: false };
  const shortener = createShortener({ tokenCounter: async () => countText });
  const first = shortener.begin(turn, "conv_1", () => {});
  await first.lessThan(await first.itemsFor("a", undefined), "a", toRefusal(undefined));
  const next = shortener.begin(turn, "conv_1", () => {});
  assert.ok((await next.itemsFor("a", undefined)).length < 9);
  assert.equal((await next.itemsFor("b", undefined)).length, 9);
});

suite("a model whose server says how much it takes", () => {
  const tokens = 4_000;

  test("is asked with as much, and has room for its answer", async () => {
    const expected = { asked: [101, 30], isRefused: false };
    assert.deepEqual(await ask({ items: said(101), takes: 30, says: { tokens } }), expected);
  });

  test("is asked with as much as the answer leaves, if that is part of what is too long", async () => {
    const expected = { asked: [21, 10], isRefused: false };
    assert.deepEqual(await ask({ items: said(21), takes: 10, says: { tokens, answer: 3_000 } }), expected);
  });

  test("is not asked again if the answer alone is to be longer", async () => {
    const expected = { asked: [21], isRefused: true };
    assert.deepEqual(await ask({ items: said(21), says: { tokens, answer: 4_000 } }), expected);
  });

  test("is asked again if only the conversation is too long, however long an answer the request allows", async () => {
    const expected = { asked: [51, 20], isRefused: false };
    const settings = { maxOutputTokens: 8_000 };
    assert.deepEqual(await ask({ items: said(51), takes: 20, settings, says: { tokens } }), expected);
  });

  test("is asked with all of the conversation next time, if only a long answer left no room for it", async () => {
    const turn = { id: "resp_1", model: "m", items: said(21), settings: { tools: [] }, stream: false };
    const shortener = createShortener({ tokenCounter: async () => countText });
    const first = shortener.begin(turn, "conv_1", () => {});
    await first.lessThan(await first.itemsFor("a", undefined), "a", toRefusal({ tokens, answer: 3_000 }));
    const next = shortener.begin(turn, "conv_1", () => {});
    assert.equal((await next.itemsFor("a", undefined)).length, 21);
  });

  test("is not asked with all of it next time, because an answer alone was to be too long", async () => {
    const turn = { id: "resp_1", model: "m", items: said(51), settings: { tools: [] }, stream: false };
    const shortener = createShortener({ tokenCounter: async () => countText });
    const first = shortener.begin(turn, "conv_1", () => {});
    await first.lessThan(await first.itemsFor("a", undefined), "a", toRefusal({ tokens }));
    const second = shortener.begin(turn, "conv_1", () => {});
    const items = await second.itemsFor("a", undefined);
    assert.equal(await second.lessThan(items, "a", toRefusal({ tokens, answer: 4_000 })), undefined);
    const third = shortener.begin(turn, "conv_1", () => {});
    assert.equal((await third.itemsFor("a", undefined)).length, items.length);
  });

  test("is asked with less, if its tokens are shorter than ours", async () => {
    const { asked, isRefused } = await ask({ items: said(101), takes: 20, says: { tokens } });
    assert.deepEqual([asked.slice(0, 2), isRefused], [[101, 30], false]);
    assert.ok(asked.length < 5);
  });
});
