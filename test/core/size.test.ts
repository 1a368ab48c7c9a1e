/** How many items and tools one request may contain. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { checkSize } from "../../src/core/size.ts";
import type { Tool } from "../../src/core/turn.ts";

const limits = { maxItems: 2, maxTools: 3 };
const extra = { dialect: "responses", fields: {} } as const;
const f: Tool = { type: "function", name: "f" };
const toGroup = (...tools: Tool[]): Tool => ({ type: "other", group: { name: "g", tools }, extra });
const bring = (...tools: Tool[]): Item => ({ type: "other", extra, tools });

function check(tools: readonly Tool[], items: readonly Item[] = [], toolsParam?: string): void {
  checkSize({ items, itemsParam: "input", toolsParam }, limits, tools);
}

const enough: readonly (readonly [tools: readonly Tool[], items: readonly Item[]])[] = [
  [[f, f, f], []],
  [[toGroup(f, f, f)], []],
  [[toGroup(), toGroup(), toGroup()], []],
  [[f], [bring(f), bring(f)]],
];

test("as many tools as the limit allows are accepted, alone, in groups or with items", () => {
  for (const [tools, items] of enough) assert.doesNotThrow(() => check(tools, items));
});

const tooMany: readonly (readonly [tools: readonly Tool[], items: readonly Item[], param: string, count: number])[] = [
  [[f, f, f, f], [], "tools", 4],
  [[f, toGroup(f, f, f)], [], "tools", 4],
  [[toGroup(), toGroup(), toGroup(), toGroup()], [], "tools", 4],
  [[f, f], [bring(f), bring(toGroup(f))], "input", 4],
];

test("one tool more is refused, and the error has the field, the number and the setting to change", () => {
  for (const [tools, items, param, count] of tooMany) {
    assert.throws(() => check(tools, items), {
      code: "too_many_tools",
      param,
      message: `'${param}' brings the tools of this request to ${count}; at most 3 are allowed (gateway.http.limits.max_tools).`,
    });
  }
});

test("a caller that uses `functions` gets that name in the error", () => {
  assert.throws(() => check([f, f, f, f], [], "functions"), { code: "too_many_tools", param: "functions" });
});
