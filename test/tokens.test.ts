import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, suite, test } from "node:test";
import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { createTokenCounter } from "../src/tokens.ts";
import { worked } from "./worked.ts";

const ready = createTokenCounter();

suite("the token counter", () => {
  let count: (text: string) => number;
  // Each request has its own counter, and so has each test.
  beforeEach(async () => void (count = await ready()));

  test("counts a limited part of a request, and estimates the rest by its length", () => {
    const words = "one two three four five ".repeat(2_000);
    const first = count(words);
    for (let times = 0; times < 10; times++) count(`${times} ${words}`);
    const began = worked();
    assertClose(count("一丁丂七丄丅丆万丈三".repeat(500_000)), (first / words.length) * 5_000_000, 0.05);
    assert.ok(worked() - began < 50, "it was not counted");
  });

  test("counts short texts exactly", () => {
    for (const text of ["", "Hello, world!", "Wie geht es dir?", "你好，世界", "👩‍👩‍👧", '{"a":[1,2,3]}']) {
      assert.equal(count(text), countTokens(text), text);
    }
    assert.equal(count("Hello, world!"), 4);
  });

  test("treats the names of control tokens as text", () => {
    assert.equal(count("<|endoftext|>"), 7);
  });

  test("is close for long texts, whether it reads all of them or only samples", () => {
    const page = readFileSync(new URL("../README.md", import.meta.url), "utf8");
    assert.ok(page.length > 2_000);
    assertClose(count(page), countTokens(page), 0.02);
    const book = page.repeat(Math.ceil(300_000 / page.length));
    assertClose(count(book), countTokens(book), 0.02);
  });

  test("returns the same for a text it has seen before", () => {
    const text = "so it goes ".repeat(1_000);
    assert.equal(count(text), count(text));
    assert.equal(count(text), 3_001);
  });

  test("never finds more tokens than bytes, and at least one in every text", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(0x10ffff), { maxLength: 1_000, size: "max" }), (codes) => {
        const text = String.fromCodePoint(...codes);
        const tokens = count(text);
        assert.ok(tokens <= Buffer.byteLength(text));
        assert.ok(tokens > 0 || text === "");
      }),
      { numRuns: 20 },
    );
  });

  for (const [name, unit, tokensPerCharacter] of [
    ["one letter", "a", 1 / 8],
    ["blanks", " ", 1 / 80],
    ["line ends", "\n", 1 / 16],
    ["one emoji", "😀", 1 / 2],
    ["one ideograph", "中", 1],
    ["halves of characters", "\ud800", 1 / 8],
    ["capitals", "QWXZJK", 0.8],
  ] as const) {
    test(`counts a long run of ${name} quickly, and a much longer one in the same time`, () => {
      for (const length of [60_000, 12_000_000]) {
        const text = unit.repeat(length / unit.length);
        const begun = worked();
        assertClose(count(text), length * tokensPerCharacter, 0.2);
        const tookMs = worked() - begun;
        // In one piece the shorter runs take up to half a minute, and the longer ones overflow the stack.
        assert.ok(tookMs < 5_000, `it took ${tookMs} ms`);
      }
    });
  }

  test("splits no character in two", () => {
    const odd = `a${"😀".repeat(300)}`;
    assert.equal(count(odd), countTokens(odd));
  });
});

function assertClose(found: number, expected: number, share: number): void {
  const isClose = Math.abs(found - expected) <= expected * share;
  assert.ok(isClose, `${found} is not within ${share * 100} % of ${expected}`);
}
