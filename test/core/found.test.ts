/** What a model reads of the tools that its search found. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeFound } from "../../src/core/found.ts";
import type { Tool } from "../../src/core/turn.ts";

const extra = { dialect: "responses", fields: {} } as const;

test("Found tools have their names and the beginnings of long descriptions; those of a group share its description.", () => {
  const tools: readonly Tool[] = [
    { type: "function", name: "look" },
    { type: "custom", name: "run", description: "a".repeat(201) },
    { type: "function", name: "walk", description: "b".repeat(200) },
    { type: "other", name: "web", extra },
    {
      type: "other",
      group: {
        name: "crm",
        description: "Customers.",
        tools: [
          { type: "function", name: "find" },
          { type: "function", name: "drop", description: "Deletes one." },
          { type: "other", extra },
        ],
      },
      extra,
    },
  ];
  assert.deepEqual(JSON.parse(describeFound(tools, (group, name) => `${group}_${name}`)), [
    { name: "look" },
    { name: "run", description: `${"a".repeat(200)}…` },
    { name: "walk", description: "b".repeat(200) },
    { name: "crm_find", description: "Customers." },
    { name: "crm_drop", description: "Deletes one." },
  ]);
});
