import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test, type TestContext } from "node:test";

const source = JSON.stringify(new URL("../src/log.ts", import.meta.url).href);

/** A process that logs two lines and then runs the given code. */
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

test("a new level applies to the lines from then on", async () => {
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

test("a reader that is gone does not stop the process", async () => {
  const child = logAnd("setTimeout(() => {}, 50);");
  child.stderr.destroy();
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
});

/**
 * A process whose standard error does not block. It logs so many lines at once, reports that, and waits for its input
 * to end.
 */
function logMuch(context: TestContext, lines: number, then = "process.stdin.resume();") {
  const program = `import { createLog } from ${source};
    void process.stderr; // makes it non-blocking
    const { log } = createLog("info");
    for (let index = 0; index < ${lines}; index++) log.info({ index, rest: "é".repeat(1 + (index % 200)) }, "request");
    process.stdout.write("logged");
    ${then}`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program]);
  context.after(() => child.kill("SIGKILL"));
  return child;
}

interface Line {
  readonly index?: number;
  readonly lost?: number;
}

/** Reads so many lines, including those reported as lost; every line is complete. */
async function readLines(child: ReturnType<typeof logMuch>, lines: number): Promise<Line[]> {
  const read: Line[] = [];
  let rest = "";
  let seen = 0;
  child.stderr.setEncoding("utf8");
  for await (const chunk of child.stderr) {
    const [last = "", ...whole] = (rest + String(chunk)).split("\n").toReversed();
    rest = last;
    for (const text of whole.toReversed()) {
      const line = JSON.parse(text) as Line;
      seen += line.lost ?? 1;
      read.push(line);
    }
    if (seen >= lines) child.stdin.end();
  }
  assert.deepEqual([seen, rest], [lines, ""]);
  return read;
}

test("a burst that exceeds the reader's buffer arrives complete and in order", { timeout: 20_000 }, async (context) => {
  const child = logMuch(context, 3_000);
  const read = await readLines(child, 3_000);
  assert.deepEqual(
    read.map(({ index }) => index),
    Array.from({ length: 3_000 }, (_, index) => index),
  );
});

test("a stream of lines arrives complete while its reader keeps up", { timeout: 20_000 }, async (context) => {
  // More per second than could be written if each part waited for the usual moment.
  const steadily = `for (let index = 3_000; index < 12_000; ) {
      for (let many = 0; many < 60; many++) log.info({ index: index++, rest: "é".repeat(100) }, "request");
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    process.stdin.resume();`;
  const read = await readLines(logMuch(context, 3_000, steadily), 12_000);
  assert.deepEqual(
    read.filter(({ lost }) => lost !== undefined),
    [],
  );
});

test("the end of a burst is written before the process exits", { timeout: 20_000 }, async (context) => {
  const read = await readLines(logMuch(context, 3_000, "process.exit(0);"), 3_000);
  assert.equal(read.at(-1)?.index, 2_999);
});

test(
  "whole lines are dropped while nobody reads, and their number is reported later",
  { timeout: 20_000 },
  async (context) => {
    const child = logMuch(context, 20_000);
    await once(child.stdout, "data");
    const read = await readLines(child, 20_000);
    const told = read.filter(({ lost }) => lost !== undefined);
    assert.equal(told.length, 1);
    assert.ok(read.length < 10_000, `${read.length} lines were written`);
  },
);
