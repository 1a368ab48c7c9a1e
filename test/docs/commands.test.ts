/** The commands and scripts on the pages do what the pages say, run unchanged from the first start on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf, pages } from "./pages.ts";
import { follow, isStart, missing } from "./reader.ts";

/** The pages that newcomers follow. Each costs a second, so the long run alone follows the others. */
const first = new Set(["README.md", "docs/sessions.md", "docs/embedding.md"]);

/** A page is followed where it starts a gateway, or shows what its scripts print. */
const followed = pages.filter((page) => {
  const blocks = blocksOf(page);
  if (process.env["PORTICO_LONG"] === undefined && !first.has(page)) return false;
  return blocks.some(isStart) || blocks.some(({ kind }, at) => kind === "js" && blocks[at + 1]?.kind === "text");
});

for (const page of followed) {
  test(`every command of ${page} does what the page says`, { skip: missing, timeout: 60_000 }, async (context) => {
    const ran = await follow(page, context);
    assert.ok(ran >= 2, `only ${ran} blocks were run`);
  });
}

test("the README shows a first start, and a conversation that goes on after another", () => {
  assert.equal(blocksOf("README.md").filter(isStart).length, 2);
});
