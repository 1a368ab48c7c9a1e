import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { toRuns } from "../../src/core/place/runs.ts";
import { worked } from "../worked.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const call = (callId: string, name: string, written: string): Item => ({
  type: "tool-call",
  kind: "function",
  callId,
  name,
  arguments: written,
});
const output = (callId: string, text: string): Item => ({
  type: "tool-output",
  kind: "function",
  callId,
  output: text,
});

/** A call and its output that only a dialect defines. */
const command = (id: string): Item => ({
  type: "other",
  extra: { dialect: "responses", fields: { type: "shell_call", call_id: id } },
  exchange: { side: "model", id },
});
const printed = (id: string, text: string): Item => ({
  type: "other",
  extra: { dialect: "responses", fields: { type: "shell_call_output", call_id: id, output: text } },
  exchange: { side: "tools", id },
});

/** The canonical form of a list, without positions. */
function canon(items: readonly Item[]): readonly [string, string][] {
  return toRuns(items).map((run) => [run.side, run.canon]);
}

const accounts: readonly [string, readonly Item[], readonly Item[]][] = [
  ["line ends", [user("a\r\nb\rc")], [user("a\nb\nc")]],
  ["trailing blanks", [user("a  \n b\t\n"), assistant(" x ")], [user("a\n b"), assistant("x")]],
  ["trailing blanks of other scripts", [user("a\u3000\nb\n")], [user("a\u3000\nb")]],
  ["lines of other blanks", [user("a\n\u00a0\nb")], [user("a\nb")]],
  ["messages merged with a blank line", [user("a"), user("b")], [user("a\n\nb")]],
  [
    "parts instead of a string",
    [user("a\nb")],
    [
      {
        type: "message",
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ],
  ],
  ["reasoning", [{ type: "reasoning", summary: [], text: "hm" }, assistant("x")], [assistant("x")]],
  ["system messages", [{ type: "message", role: "system", content: "be brief" }, user("a")], [user("a")]],
  [
    "ids of calls and the order of arguments",
    [call("1", "f", '{"a":1,"b":{"c":2,"d":3}}')],
    [call("2", "f", '{ "b": {"d":3, "c":2}, "a": 1 }')],
  ],
  ["missing or empty arguments", [call("1", "f", " ")], [call("1", "f", "{ }")]],
  [
    "text before or after the calls of one answer",
    [call("1", "f", "{}"), assistant("x")],
    [assistant("x"), call("1", "f", "{}")],
  ],
  [
    "the order of parallel outputs",
    [call("1", "f", "{}"), call("2", "g", "{}"), output("2", "two"), output("1", "one")],
    [call("1", "f", "{}"), call("2", "g", "{}"), output("1", "one"), output("2", "two")],
  ],
  [
    "the order of parallel outputs that only their dialect defines",
    [command("1"), command("2"), command("3"), printed("3", "three"), printed("2", "two"), printed("1", "one")],
    [command("1"), command("2"), command("3"), printed("1", "one"), printed("2", "two"), printed("3", "three")],
  ],
  ["empty messages", [user("a"), assistant("")], [user("a")]],
];

for (const [what, one, other] of accounts) {
  test(`two versions of a conversation are equal despite ${what}`, () => {
    assert.deepEqual(canon(one), canon(other));
  });
}

const differences: readonly [string, readonly Item[], readonly Item[]][] = [
  ["words", [user("a")], [user("b")]],
  ["sides", [user("a")], [assistant("a")]],
  ["blanks inside a line", [user("a b")], [user("ab")]],
  ["a call's name", [call("1", "f", "{}")], [call("1", "g", "{}")]],
  ["a call's arguments", [call("1", "f", '{"a":1}')], [call("1", "f", '{"a":2}')]],
  [
    "which output belongs to which call",
    [call("1", "f", "{}"), call("2", "g", "{}"), output("1", "x"), output("2", "y")],
    [call("1", "f", "{}"), call("2", "g", "{}"), output("1", "y"), output("2", "x")],
  ],
  [
    "an image",
    [{ type: "message", role: "user", content: [{ type: "image", url: "a" }] }],
    [{ type: "message", role: "user", content: [{ type: "image", url: "b" }] }],
  ],
  [
    "audio",
    [{ type: "message", role: "user", content: [{ type: "audio", data: "a", format: "wav" }] }],
    [{ type: "message", role: "user", content: [{ type: "audio", data: "b", format: "wav" }] }],
  ],
  [
    "a file",
    [{ type: "message", role: "user", content: [{ type: "file", fileId: "a" }] }],
    [{ type: "message", role: "user", content: [{ type: "file", fileId: "b" }] }],
  ],
  [
    "an uploaded image",
    [{ type: "message", role: "user", content: [{ type: "image", fileId: "a" }] }],
    [{ type: "message", role: "user", content: [{ type: "image", fileId: "b" }] }],
  ],
  [
    "a file at a URL",
    [{ type: "message", role: "user", content: [{ type: "file", url: "a" }] }],
    [{ type: "message", role: "user", content: [{ type: "file", url: "b" }] }],
  ],
  [
    "a file sent inline",
    [{ type: "message", role: "user", content: [{ type: "file", data: "a", name: "x" }] }],
    [{ type: "message", role: "user", content: [{ type: "file", data: "b", name: "x" }] }],
  ],
  ["the same sentence said twice", [user("a"), assistant("x"), user("a")], [user("a"), assistant("x")]],
];

for (const [what, one, other] of differences) {
  test(`two versions of a conversation differ in ${what}`, () => {
    assert.notDeepEqual(canon(one), canon(other));
  });
}

test("a run ends after its own last item, whatever precedes the next run", () => {
  const system: Item = { type: "message", role: "system", content: "be brief" };
  assert.deepEqual(
    toRuns([user("a"), assistant("x"), system, user("b")]).map((run) => run.end),
    [1, 2, 4],
  );
});

test("a long text is read in linear time, however many blanks it has", () => {
  const blanks = " ".repeat(200_000);
  const started = worked();
  toRuns([user(`${blanks}a${blanks}\n`.repeat(2))]);
  assert.ok(worked() - started < 1000);
});

test("arguments with a million fields are not sorted, as that would block all other requests", () => {
  const fields = Array.from({ length: 1_000_000 }, (_, index) => `"k${index}":1`).join(",");
  const started = worked();
  toRuns([user("a"), call("c", "f", `{${fields}}`)]);
  assert.ok(worked() - started < 1000);
  const long = JSON.stringify({ text: '"x": {'.repeat(20_000), path: "a" });
  assert.deepEqual(canon([call("c", "f", long)]), canon([call("c", "f", JSON.stringify(JSON.parse(long), null, 2))]));
});
