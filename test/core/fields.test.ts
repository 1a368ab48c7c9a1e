import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherFields } from "../../src/core/fields.ts";

test("lists grow, and of anything else the last value counts", () => {
  const gathered = gatherFields();
  assert.equal(gathered.toExtra(), undefined);
  const first = { images: [{ type: "image_url", index: 0 }], id: 1, tags: "none" };
  gathered.add({ dialect: "chat", fields: first });
  gathered.add({ dialect: "chat", source: "here", fields: { images: [{ type: "image_url", index: 0 }], tags: ["a"] } });
  assert.deepEqual(gathered.toExtra(), {
    dialect: "chat",
    source: "here",
    fields: { images: [...first.images, ...first.images], id: 1, tags: ["a"] },
  });
  assert.equal(first.images.length, 1);
});
