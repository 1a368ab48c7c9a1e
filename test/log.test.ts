import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";

const source = JSON.stringify(join(import.meta.dirname, "../src/log.ts"));

/** A process that logs two lines and then does what it is told. */
function logAnd(then: string) {
  const program = `import { createLog } from ${source};
    const { log, close } = createLog("error");
    log.error({ a: 1 }, "one");
    log.info({}, "unheard");
    log.error({ b: 2 }, "two");
    ${then}`;
  return spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    stdio: ["ignore", "ignore", "pipe"],
  });
}

for (const [when, then] of [
  ["when it is closed", "close();"],
  ["when the process ends by itself", ""],
  ["when the process is ended", "process.exit(0);"],
]) {
  test(`every line at or above the level is written ${when}`, async () => {
    const child = logAnd(then ?? "");
    let text = "";
    child.stderr.on("data", (chunk) => (text += chunk));
    assert.deepEqual(await once(child, "close"), [0, null]);
    const lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { msg: string });
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      ["one", "two"],
    );
  });
}

test("another level counts for the lines from then on", async () => {
  const program = `import { createLog } from ${source};
    const { log, setLevel } = createLog("error");
    log.info({}, "unheard");
    setLevel("info");
    log.info({}, "heard");
    setLevel("silent");
    log.error({}, "unheard too");`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  child.stderr.on("data", (chunk) => (text += chunk));
  assert.deepEqual(await once(child, "close"), [0, null]);
  assert.match(text, /^\{[^\n]*"msg":"heard"\}\n$/);
});

test("a reader that is gone does not take the process with it", async () => {
  const child = logAnd("setTimeout(() => {}, 50);");
  child.stderr.destroy();
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
});
