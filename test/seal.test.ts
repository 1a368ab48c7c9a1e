import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { createSeal } from "../src/seal.ts";

const sealOf = createSeal(new Uint8Array(32).fill(1));
const { seal, open, isOurs } = sealOf("alice");

test("sealed text can be opened again, and reveals nothing while sealed", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      assert.equal(open(seal(text)), text);
    }),
  );
  assert.match(seal("The secret is out."), /^portico2\.[\w-]{8}\.[\w-]+$/);
  assert.doesNotMatch(seal("The secret is out."), /secret/);
});

test("the same text is sealed to the same bytes, a different one to others", () => {
  assert.equal(seal("one"), seal("one"));
  assert.notEqual(seal("one").slice(18, 34), seal("two").slice(18, 34));
});

test("a key made from the same secret opens what was sealed before, another key does not", () => {
  assert.equal(createSeal(new Uint8Array(32).fill(1))("alice").open(seal("one")), "one");
  const other = createSeal(new Uint8Array(32).fill(2))("alice");
  assert.equal(other.open(seal("one")), undefined);
  assert.equal(other.isOurs(seal("one")), false);
});

test("an imported key opens what was sealed with it, for its owner, and seals nothing", () => {
  const other = createSeal(new Uint8Array(32).fill(2), [new Uint8Array(32).fill(3), new Uint8Array(32).fill(1)]);
  const { seal: sealOther, open: openOther, isOurs: isTheirs } = other("alice");
  assert.equal(openOther(seal("one")), "one");
  assert.equal(isTheirs(seal("one")), true);
  assert.equal(other("bob").open(seal("one")), undefined);
  assert.equal(sealOther("one"), createSeal(new Uint8Array(32).fill(2))("alice").seal("one"));
  assert.equal(openOther(sealOther("one")), "one");
  assert.equal(open(sealOther("one")), undefined);
});

test("what was sealed for one owner cannot be opened by another, but its origin is recognised", () => {
  for (const name of ["bob", "", "alice2", "alic", "Alice"]) {
    const other = sealOf(name);
    assert.equal(other.open(seal("one")), undefined);
    assert.equal(open(other.seal("one")), undefined);
    assert.equal(other.isOurs(seal("one")), true);
  }
});

test("no two owners share a nonce, even if their names and texts concatenate to the same", () => {
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

test("what was sealed before seals had owners is recognised, but not opened", () => {
  assert.equal(isOurs("portico1.AAAA"), true);
  assert.equal(isOurs("gAAAAABo"), false);
});

test("foreign or modified text is not opened, and nothing is thrown", () => {
  const sealed = seal("one");
  for (let at = 0; at < sealed.length; at++) {
    const changed = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
    // The last character may contain unused bits.
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
