/** The rule, row by row where programs share a session: which request is another program's, and who takes the tip. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readHistory } from "../../src/core/history.ts";
import type { Item } from "../../src/core/item.ts";
import {
  type Claim,
  type Found,
  isOtherProgram,
  type Node,
  type Program,
  takesTip,
  toPlace,
} from "../../src/core/place.ts";

const agent: Program = { instructions: "agent", offersTools: true };
const title: Program = { instructions: "title", offersTools: false };
const bare: Program = { instructions: undefined, offersTools: false };

const onlyNew = readHistory([{ type: "message", role: "user", content: "hi" }] satisfies Item[], String);

const tipOf = (program: Program | undefined, depth = 1): Node => {
  return { turn: 1, digest: "d", remembers: true, hasFollowers: false, depth, program };
};

const foundWith = (tip: Node | undefined, shows = false): Found => {
  const session = { id: "conv_1", isHidden: false, shows, tip };
  return { session, named: undefined, wasAsked: false, match: undefined, makers: new Map() };
};

const claimOf = (program: Program, isByHeader = true): Claim => {
  return { name: "hint", shows: false, isByHeader, program: () => program };
};

const pairs: readonly (readonly [
  what: string,
  one: Program | undefined,
  other: Program | undefined,
  isOther: boolean,
])[] = [
  ["other instructions, and one of them offers tools", agent, title, true],
  ["the same instructions, and one of them offers tools", agent, { ...agent, offersTools: false }, false],
  ["other instructions, and both offer tools", agent, { ...title, offersTools: true }, false],
  ["other instructions, and neither offers tools", title, { ...agent, offersTools: false }, false],
  ["one of them without instructions", agent, bare, false],
  ["one of them stored before programs were kept", agent, undefined, false],
];

for (const [what, one, other, isOther] of pairs) {
  test(`two requests are ${isOther ? "two programs" : "one program"}: ${what}`, () => {
    assert.equal(isOtherProgram(one, other), isOther);
    assert.equal(isOtherProgram(other, one), isOther);
  });
}

const { waits, leads, parent, told } = toPlace(claimOf(agent), onlyNew, foundWith(tipOf(title)));

test("under a header another program is a new root, which neither waits nor moves the tip that it saw", () => {
  assert.deepEqual([parent, waits, leads, told], [undefined, false, false, "new"]);
});

const continued: readonly (readonly [what: string, claim: Claim, tip: Node])[] = [
  ["under `user`", claimOf(agent, false), tipOf(title)],
  ["where the tip has a turn before it", claimOf(agent), tipOf(title, 2)],
  ["where the tip is the same program's", claimOf(agent), tipOf(agent)],
  ["where the tip is of a store of layout 1", claimOf(agent), tipOf(undefined)],
];

for (const [where, claim, tip] of continued) {
  test(`a request with only new items continues the tip ${where}`, () => {
    const place = toPlace(claim, onlyNew, foundWith(tip));
    assert.deepEqual([place.parent, place.waits, place.leads, place.told], [tip, true, true, "continued"]);
  });
}

const root = toPlace(claimOf(agent), onlyNew, foundWith(undefined));

const taking: readonly (readonly [what: string, claim: Claim, place: typeof root, takes: boolean])[] = [
  ["a root that offers tools, under a header", claimOf(agent), root, true],
  ["a root without tools", claimOf(title), root, false],
  ["a root that offers tools without instructions", claimOf({ ...bare, offersTools: true }), root, false],
  ["a root that offers tools, under `user`", claimOf(agent, false), root, false],
  ["a turn that has a parent", claimOf(agent), { ...root, parent: tipOf(agent) }, false],
];

for (const [what, claim, place, takes] of taking) {
  test(`${what} ${takes ? "takes" : "never takes"} the tip from a root of another program`, () => {
    assert.equal(takesTip(claim, place), takes);
  });
}
