import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { createSeal } from "../src/seal.ts";

const sealOf = createSeal(new Uint8Array(32).fill(1));
const { seal, open, isOurs } = sealOf("alice");

test("what was sealed is opened again, and shows nothing of itself meanwhile", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      assert.equal(open(seal(text)), text);
    }),
  );
  assert.match(seal("The secret is out."), /^portico2\.[\w-]{8}\.[\w-]+$/);
  assert.doesNotMatch(seal("The secret is out."), /secret/);
});

test("the same text is sealed in the same bytes, another one in others", () => {
  assert.equal(seal("one"), seal("one"));
  assert.notEqual(seal("one").slice(18, 34), seal("two").slice(18, 34));
});

test("a key made of the same secret opens what was sealed before, another key does not", () => {
  assert.equal(createSeal(new Uint8Array(32).fill(1))("alice").open(seal("one")), "one");
  const other = createSeal(new Uint8Array(32).fill(2))("alice");
  assert.equal(other.open(seal("one")), undefined);
  assert.equal(other.isOurs(seal("one")), false);
});

test("a key that came from elsewhere opens what was sealed with it, for its owner, and seals nothing", () => {
  const other = createSeal(new Uint8Array(32).fill(2), [new Uint8Array(32).fill(3), new Uint8Array(32).fill(1)]);
  const { seal: sealOther, open: openOther, isOurs: isTheirs } = other("alice");
  assert.equal(openOther(seal("one")), "one");
  assert.equal(isTheirs(seal("one")), true);
  assert.equal(other("bob").open(seal("one")), undefined);
  assert.equal(sealOther("one"), createSeal(new Uint8Array(32).fill(2))("alice").seal("one"));
  assert.equal(openOther(sealOther("one")), "one");
  assert.equal(open(sealOther("one")), undefined);
});

test("what was sealed for one owner another cannot open, but knows where it was sealed", () => {
  for (const name of ["bob", "", "alice2", "alic", "Alice"]) {
    const other = sealOf(name);
    assert.equal(other.open(seal("one")), undefined);
    assert.equal(open(other.seal("one")), undefined);
    assert.equal(other.isOurs(seal("one")), true);
  }
});

test("no two owners share a nonce, however their names and texts run together", () => {
  const nonceOf = (owner: string, text: string) => sealOf(owner).seal(text).slice(18, 34);
  const nonces = [
    ["a", "bc"],
    ["ab", "c"],
    ["abc", ""],
    ["", "abc"],
    ["1 a", ""],
    ["", "1 a"],
  ].map(([owner = "", text = ""]) => nonceOf(owner, text));
  assert.equal(new Set(nonces).size, nonces.length);
});

test("what was sealed before seals had owners is known, and not opened", () => {
  assert.equal(isOurs("portico1.AAAA"), true);
  assert.equal(isOurs("gAAAAABo"), false);
});

test("what is not ours, or was changed, is not opened and nothing is thrown", () => {
  const sealed = seal("one");
  for (let at = 0; at < sealed.length; at++) {
    const changed = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
    // The last character may carry bits that mean nothing.
    if (at < sealed.length - 1) assert.equal(open(changed), undefined, changed);
    assert.equal(open(sealed.slice(0, at)), undefined);
  }
  for (const foreign of [
    "",
    "portico1.",
    "portico2.",
    `${sealed.slice(0, 18)}!`,
    "gAAAAABo",
    "portico3.".concat(sealed.slice(9)),
  ]) {
    assert.equal(open(foreign), undefined);
  }
});
