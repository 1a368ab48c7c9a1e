import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { createSeal } from "../src/seal.ts";

const { seal, open } = createSeal(new Uint8Array(32).fill(1));

test("what was sealed is opened again, and shows nothing of itself meanwhile", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      assert.equal(open(seal(text)), text);
    }),
  );
  assert.match(seal("The secret is out."), /^portico1\.[\w-]+$/);
  assert.doesNotMatch(seal("The secret is out."), /secret/);
});

test("the same text is sealed in the same bytes, another one in others", () => {
  assert.equal(seal("one"), seal("one"));
  assert.notEqual(seal("one").slice(0, 25), seal("two").slice(0, 25));
});

test("a key made of the same secret opens what was sealed before, another key does not", () => {
  assert.equal(createSeal(new Uint8Array(32).fill(1)).open(seal("one")), "one");
  assert.equal(createSeal(new Uint8Array(32).fill(2)).open(seal("one")), undefined);
});

test("what is not ours, or was changed, is not opened and nothing is thrown", () => {
  const sealed = seal("one");
  for (let at = 0; at < sealed.length; at++) {
    const changed = sealed.slice(0, at) + (sealed[at] === "A" ? "B" : "A") + sealed.slice(at + 1);
    // The last character may carry bits that mean nothing.
    if (at < sealed.length - 1) assert.equal(open(changed), undefined, changed);
    assert.equal(open(sealed.slice(0, at)), undefined);
  }
  for (const foreign of ["", "portico1.", "portico1.!", "gAAAAABo", "portico2.".concat(sealed.slice(9))]) {
    assert.equal(open(foreign), undefined);
  }
});
