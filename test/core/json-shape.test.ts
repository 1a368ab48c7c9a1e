/** What is known of a JSON text before it is parsed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addShapes,
  isExcessive,
  lookThrough,
  mostInAnswers,
  mostNames,
  mostOfAnyName,
  shapeOf,
  toPartBytes,
} from "../../src/core/json-shape.ts";

const unlimited = { depth: Infinity, containers: Infinity, members: Infinity };

test("Objects, lists, members and commas are counted, but not in strings, which may be unclosed.", () => {
  for (const [text, depth, containers, members, commas] of [
    ["7", 0, 0, 0, 0],
    ["[]", 1, 1, 0, 0],
    ['["", "\\"", [true]]', 2, 2, 0, 2],
    ['{"a": [1, 2, {}], "b": {}}', 3, 4, 2, 3],
    ['["[{:,", "\\"[{:,", "\\\\", []]', 2, 2, 0, 3],
    ['[1, "[{:,', 1, 1, 0, 1],
    ["]]]}{", 0, 1, 0, 0],
  ] as const) {
    const { list, ...shape } = lookThrough(text, unlimited);
    assert.deepEqual(shape, { depth, containers, members, commas }, text);
    assert.equal(list, undefined);
  }
});

test("Nothing is counted beyond a limit that is exceeded.", () => {
  assert.equal(lookThrough("[[[[[", { ...unlimited, depth: 2 }).depth, 3);
  assert.equal(lookThrough("[[],[],[],[]]", { ...unlimited, containers: 2 }).containers, 3);
  assert.equal(lookThrough('{"a":1,"b":2,"c":3,"d":4}', { ...unlimited, members: 2 }).members, 3);
});

test("The last list of a name in the outermost object is found, with what is in it alone.", () => {
  for (const [text, found] of [
    ['{"a": {"b": 1}, "c": [{}, [2]], "d": 1}', { inside: "{}, [2]", depth: 3, containers: 2, members: 0, commas: 1 }],
    ['{"c" : \n [{"x": 1}]}', { inside: '{"x": 1}', depth: 3, containers: 1, members: 1, commas: 0 }],
    ['{"c":[1],"c":[2, 3]}', { inside: "2, 3", depth: 2, containers: 0, members: 0, commas: 1 }],
    ['{"c":[1],"d":{}}', { inside: "1", depth: 2, containers: 0, members: 0, commas: 0 }],
    ['{"c":[]}', { inside: "", depth: 2, containers: 0, members: 0, commas: 0 }],
    ['{"c":{}}', undefined],
    ['{"cc":[]}', undefined],
    ['{"b":{"c":[]}}', undefined],
    ['["c",[]]', undefined],
    ['["c"[]]', undefined],
    ['{"c":[1', undefined],
  ] as const) {
    const { list } = lookThrough(text, unlimited, "c");
    const { start = 0, end = 0, ...shape } = list ?? {};
    assert.deepEqual(list && { inside: text.slice(start, end), ...shape }, found, text);
  }
});

test("Two texts contain together what each contains, and are as deep as the deeper one.", () => {
  const [one, other] = [lookThrough('{"a":[1,2]}', unlimited), lookThrough('[[{"b":1},3]]', unlimited)];
  const both = { depth: 3, containers: 5, members: 2, commas: 2 };
  assert.deepEqual(addShapes(one, other), both);
  assert.deepEqual(addShapes(other, one), both);
});

test("Every part of a text takes memory.", () => {
  const none = { depth: 1, containers: 0, members: 0, commas: 0 };
  assert.equal(toPartBytes(none), 0);
  for (const part of ["containers", "members", "commas"]) assert.ok(toPartBytes({ ...none, [part]: 1 }) > 0, part);
});

test("A value has as many parts as the text that it was parsed from.", () => {
  const text = '{"a":[{},[1,"x",null],{"b":{"c":[]}}],"d":"{[:"}';
  const { containers, members } = lookThrough(text, unlimited);
  assert.deepEqual(shapeOf(JSON.parse(text)), { depth: 0, containers, members, commas: 6 });
});

test("Only JSON that is nested too deeply, or has too many parts, is excessive.", () => {
  const { depth } = mostInAnswers;
  assert.equal(isExcessive("[".repeat(depth)), false);
  assert.equal(isExcessive(` ${"[".repeat(depth)}`), false);
  assert.equal(isExcessive(` ${"[".repeat(depth + 1)}`), true);
  assert.equal(isExcessive(`x${"[".repeat(depth + 1)}`), false);
});

test("Many members are excessive only if they have many different names.", () => {
  const withNames = (names: number, repeated: number) => {
    const different = Array.from({ length: names }, (_, index) => `"name ${index}" : ":"`);
    return `[{${different.join()}}${',{"name 0":":"}'.repeat(repeated)}]`;
  };
  assert.equal(isExcessive(withNames(mostNames, mostOfAnyName)), false);
  assert.equal(isExcessive(withNames(mostNames + 1, mostOfAnyName)), true);
  assert.equal(isExcessive(withNames(mostNames + 1, 1)), false);
  assert.equal(isExcessive(`{${":".repeat(mostInAnswers.members + 1)}`), true);
});
