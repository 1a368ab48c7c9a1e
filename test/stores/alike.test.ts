import assert from "node:assert/strict";
import { test } from "node:test";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { countRuns } from "../sessions/histories.ts";
import { checkAlike } from "./alike.ts";
import { stepKinds } from "./alike-steps.ts";
import { createFiles } from "./files.ts";

const newFile = createFiles();

test("two stores on one SQLite file behave like one in memory, whatever is done to them", async () => {
  const numRuns = countRuns(1 / 200);
  const counts = await checkAlike(numRuns, (options) => {
    const file = newFile();
    return [createSqliteStore({ file, ...options }), createSqliteStore({ file, ...options })];
  });
  for (const kind of Object.keys(stepKinds)) {
    assert.ok((counts.get(kind) ?? 0) >= numRuns / 4, `'${kind}' was done only ${counts.get(kind) ?? 0} times`);
  }
});
