/** Stores that the gateway does not have, and what it takes to have several processes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeFolder } from "../harness/house.ts";
import { runProgram, writeConfig } from "../harness/program.ts";
import { problemOf, problemsOf, withHttp } from "./problems.ts";

for (const [what, gateway, remedy] of [
  ["a store in memory", { sessions: { store: "memory:" } }, /sqlite:/],
  ["a store in Redis", { sessions: { store: "redis://me:hush@127.0.0.1:1/0" } }, /no longer .*write "sqlite:"/],
  ["more than one worker of a store in SQLite", { workers: 2 }, /one process; .*"postgres:.*write 1/],
] as const) {
  test(`${what} is refused at the start, with a sentence that says what to do`, async (context) => {
    const folder = makeFolder(context);
    writeConfig(folder, JSON.stringify(withHttp({}, gateway)));
    const { code, stdout, stderr } = await runProgram(context, folder, "start").ended;
    assert.deepEqual([code, stdout], [1, ""]);
    const [, ...problems] = stderr.trim().split("\n");
    assert.equal(problems.length, 1, stderr);
    assert.match(problems[0]!, remedy);
    assert.doesNotMatch(stderr, /hush|unknown/);
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

test("the password in a store's address is never shown", async (context) => {
  const folder = makeFolder(context);
  const store = "postgres://me:hush@127.0.0.1:1/sessions";
  writeConfig(folder, JSON.stringify(withHttp({}, { sessions: { store } })));
  const { code, stdout } = await runProgram(context, folder, "check").ended;
  assert.equal(code, 0, stdout);
  assert.equal(JSON.parse(stdout).gateway.sessions.store, "postgres://***@127.0.0.1:1/sessions");
});
