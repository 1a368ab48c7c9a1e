/** Stores that the gateway does not have, and what it takes to have several processes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeFolder } from "../harness/house.ts";
import { runProgram, writeConfig } from "../harness/program.ts";
import { problemOf, problemsOf, withHttp } from "./problems.ts";

for (const [kind, store] of [
  ["memory", "memory:"],
  ["Redis", "redis://me:hush@127.0.0.1:1/0"],
  ["PostgreSQL", "postgres://me:hush@127.0.0.1:1/portico"],
] as const) {
  test(`a store in ${kind} is refused with a sentence that names the one that there is`, async (context) => {
    const folder = makeFolder(context);
    writeConfig(folder, JSON.stringify(withHttp({}, { sessions: { store } })));
    const { code, stderr } = await runProgram(context, folder, "check").ended;
    assert.equal(code, 1, stderr);
    const [, message = ""] = /gateway\.sessions\.store: (.*)/.exec(stderr) ?? [];
    assert.match(message, /sqlite:/i);
    assert.doesNotMatch(message.replace(/"[^"]*"|\S+@\S+/, ""), /memory:|redis:/, "it offers what there is not");
    assert.doesNotMatch(stderr, /hush/);
  });
}

test("a store in SQLite needs a file", async () => {
  for (const store of ["sqlite:", "sqlite::memory:"]) {
    assert.match(await problemOf(withHttp({}, { sessions: { store } })), /^gateway\.sessions\.store: .*file/);
  }
});

test("one process is the default, and may be written", async () => {
  assert.deepEqual(await problemsOf(withHttp({}, { workers: 1 })), []);
});

test("more processes than one are refused on SQLite, with a sentence that says why", async () => {
  const problem = await problemOf(withHttp({}, { workers: 2 }));
  assert.match(problem, /^gateway\.workers: .*(sqlite|postgres|\b1\b)/i);
  assert.doesNotMatch(problem, /unknown/i);
});
