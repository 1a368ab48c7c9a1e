/** The benchmarks measure the actual gateway. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder } from "./gateway.ts";

test(
  "the gateway of the benchmark starts, with all its timed parts, and answers",
  { timeout: 30_000 },
  async (context) => {
    const token = "sk-bench-0123456789abcdef";
    const wanted = { file: join(makeFolder(context), "sessions.db"), token, model: "http://127.0.0.1:9" };
    const child = fork(join(import.meta.dirname, "../bench/gateway.ts"), [JSON.stringify(wanted)], { execArgv: [] });
    context.after(() => child.kill());
    const [address] = (await Promise.race([once(child, "message"), once(child, "exit")])) as [string];
    const { status } = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "any", messages: [{ role: "user", content: "Hello" }] }),
    });
    assert.equal(status, 502);
    child.send("spent");
    const [spent] = (await once(child, "message")) as [{ reading: number; writing: number }];
    assert.ok(spent.reading > 0 && spent.writing > 0);
  },
);
