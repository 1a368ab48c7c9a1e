/** An unhandled rejection in an adapter's code is logged and affects no other caller. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder } from "../gateway.ts";
import { runProgram, toConfig, writeConfig } from "./program.ts";
import { tellWell } from "./talk.ts";

const rejecting = `export default {
  async *stream() {
    Promise.reject(new Error("forgotten"));
    yield [{ type: "text", text: "Hi" }];
  },
};`;

test("an unhandled rejection in a module does not stop the gateway", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "adapter.mjs"), rejecting);
  writeConfig(folder, toConfig({ adapters: { mine: { type: "module", path: "adapter.mjs" } } }));
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  for (const on of ["chat", "responses"] as const) {
    assert.equal((await tellWell(address, { on, say: "Hello" })).text, "Hi");
  }
  const { code, stderr } = await program.stop();
  assert.equal(code, 0);
  const failures = stderr
    .split("\n")
    .filter((line) => line.startsWith('{"level":50'))
    .map((line) => JSON.parse(line));
  const line = "forgotten: Something failed that nobody was waiting for. The gateway continues.";
  assert.deepEqual(
    failures.map(({ err, msg }) => `${err.message}: ${msg}`),
    [line, line],
  );
});
