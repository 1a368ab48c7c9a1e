/** A gateway in a process of its own: what an adapter's code forgets does not stop it, and its log is lines of JSON. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { endpoints, tell, tellWell } from "../harness/client.ts";
import { makeFolder, operatorToken, token } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";

const forgetful = `export default {
  async *stream() {
    Promise.reject(new Error("forgotten"));
    yield [{ type: "text", text: "Hi" }];
  },
};`;

test("a rejection that nobody handles is logged, and the gateway goes on", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "adapter.mjs"), forgetful);
  writeConfig(folder, toConfig({ gateway: { adapters: { mine: { type: "module", path: "adapter.mjs" } } } }));
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  for (const on of endpoints) assert.equal((await tellWell(address, { on, say: "a canary" })).text, "Hi");
  await tell(address, { on: "chat", say: "hi", token: "sk-wrong-0123456789" });
  const { code, stderr } = await program.stop();
  assert.equal(code, 0);
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly level: number; readonly err?: { readonly message: string } });
  assert.ok(lines.length >= 3);
  assert.ok(lines.some(({ level, err }) => level === 50 && err?.message === "forgotten"));
  for (const secret of [token, operatorToken, "sk-wrong", "canary"]) assert.ok(!stderr.includes(secret), secret);
});
