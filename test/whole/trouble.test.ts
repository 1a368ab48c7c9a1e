/**
 * A gateway whose store cannot store turns for a while: nothing is lost, no caller is misled, and it recovers by
 * itself.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, renameSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { writeArchive } from "../../src/archive/write.ts";
import type { Item } from "../../src/core/item.ts";
import { openPortico } from "../../src/index.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { compiled } from "../compiled.ts";
import { findFreePort, makeFolder, startGateway, token } from "../gateway.ts";
import { makeTurn } from "../stores/making.ts";
import { bareEnvironment, executable, runProgram, toConfig, writeConfig } from "./program.ts";
import { endpoints, startModel, tell, tellWell } from "./talk.ts";

const hinted = { user: "ann" };

/** A gateway with a log that records its lines. */
async function openLogged(context: TestContext, folder = makeFolder(context)) {
  const logged: string[] = [];
  const write = (level: string) => (_fields: object, message: string) => void logged.push(`${level}: ${message}`);
  const http = { port: 0, auth_token: token, endpoints: { compat_chat: true } };
  const portico = await openPortico(
    { gateway: { http, adapters: { echo: { type: "echo" } } } },
    { folder, env: {}, log: { info: write("info"), error: write("error") } },
  );
  context.after(() => portico.close());
  assert.ok(portico.address !== undefined);
  return { address: portico.address, logged: () => logged.filter((line) => line !== "info: request") };
}

test("the log says once why turns cannot be stored, and once that they can be again", async (context) => {
  const folder = makeFolder(context);
  const { address, logged } = await openLogged(context, folder);
  const file = join(folder, ".portico", "portico.db");
  const ask = async () => (await tell(address, { on: "chat", say: "hello", more: hinted })).status;
  assert.equal(await ask(), 200);
  assert.deepEqual(logged(), []);
  renameSync(file, `${file}.moved`);
  for (let count = 0; count < 3; count += 1)
    assert.deepEqual([await ask(), (await fetch(`${address}/readyz`)).status], [503, 503]);
  renameSync(`${file}.moved`, file);
  for (let count = 0; count < 3; count += 1) assert.deepEqual(await Promise.all([ask(), ask()]), [200, 200]);
  const [begun = "", ...rest] = logged();
  assert.match(begun, /^error: The session store cannot save turns now: its file was moved/);
  assert.deepEqual(rest, ["info: The session store can save turns again."]);
});

test("a warning of the store is in the gateway's log, and nowhere else", async (context) => {
  const { address, logged } = await openLogged(context);
  const beside: Error[] = [];
  const gather = (warning: Error) => void beside.push(warning);
  process.on("warning", gather);
  context.after(() => void process.off("warning", gather));
  const begun = once(process, "worker") as Promise<[Worker]>;
  // More than the log of the file may contain before its thread is started.
  assert.equal((await tell(address, { on: "chat", say: "long".repeat(1_250_000), more: hinted })).status, 200);
  const [thread] = await begun;
  await thread.terminate();
  const [warning = "", ...rest] = logged();
  assert.match(
    warning,
    /^error: The session store .* checkpoints its log between requests for now.*its thread has ended/,
  );
  assert.deepEqual(rest, []);
  assert.deepEqual(beside, []);
});

test("while turns cannot be stored /readyz says why, no model is asked for them, and the others are answered", async (context) => {
  const folder = makeFolder(context);
  const model = await startModel(context);
  const { address } = await startGateway(context, { adapters: model.adapters }, folder);
  const file = join(folder, ".portico", "portico.db");
  for (const on of endpoints) await tellWell(address, { on, say: "hello", more: hinted });
  assert.equal((await fetch(`${address}/readyz`)).status, 200);
  const asked = model.received.length;

  renameSync(file, `${file}.moved`);
  const ready = await fetch(`${address}/readyz`);
  assert.equal(ready.status, 503);
  assert.equal(ready.headers.get("retry-after"), "1");
  const { error } = (await ready.json()) as { readonly error: Readonly<Record<string, string>> };
  assert.equal(error["code"], "store_unavailable");
  assert.match(String(error["message"]), /cannot save turns now: its file was moved/);
  assert.ok(!String(error["message"]).includes(folder));
  for (const on of endpoints) {
    for (const stream of [false, true]) {
      const result = await tell(address, { on, say: "hello", stream, more: hinted });
      assert.equal(result.status, 503);
      assert.equal(result.error?.["code"], "store_unavailable");
      assert.equal(result.headers.get("retry-after"), "1");
    }
  }
  assert.equal(model.received.length, asked);
  for (const on of endpoints) {
    assert.equal((await tellWell(address, { on, say: "aside", more: { ...hinted, store: false } })).text, "re: aside");
  }
  assert.equal((await tellWell(address, { on: "chat", say: "no session" })).text, "re: no session");

  renameSync(`${file}.moved`, file);
  assert.equal((await fetch(`${address}/readyz`)).status, 200);
  await tellWell(address, { on: "chat", say: "and now?", more: hinted });
  assert.deepEqual(model.shown.at(-1), [
    "user: hello",
    "assistant: re: hello",
    "user: hello",
    "assistant: re: hello",
    "user: and now?",
  ]);
});

/** Part of Linux, not of this project. */
const limiter = "prlimit";

/** How large a file the process may write: it has the effect of a full disk, without needing a disk. */
function limitFiles(pid: number | undefined, bytes: number | "unlimited"): void {
  const { status, stderr } = spawnSync(limiter, ["--pid", String(pid), `--fsize=${bytes}:unlimited`]);
  assert.equal(status, 0, String(stderr));
}

const noLimits = spawnSync(limiter, ["--version"]).status !== 0 && `there is no ${limiter} here`;

test(
  "a running gateway that cannot write recovers by itself when it can again",
  { skip: noLimits },
  async (context) => {
    const folder = makeFolder(context);
    const config = toConfig({ adapters: { main: { type: "echo" } } });
    const program = runProgram(context, folder, "start", "--config", writeConfig(folder, config));
    const address = await program.address();
    const ask = async (say: string) => (await tell(address, { on: "responses", say, more: hinted })).status;
    const isReady = async () => (await fetch(`${address}/readyz`)).status;
    const long = "long ".repeat(20_000);
    assert.equal(await ask(long), 200);

    limitFiles(program.child.pid, 1_000_000);
    const outcomes: number[] = [];
    while (outcomes.at(-1) !== 503) outcomes.push(await ask(long));
    assert.ok(outcomes.slice(0, -1).every((status) => status === 200));
    assert.deepEqual([await isReady(), await ask("short")], [503, 503]);

    limitFiles(program.child.pid, "unlimited");
    while ((await isReady()) !== 200) await pause(10);
    assert.equal(await ask(long), 200);
    const { code } = await program.stop();
    assert.equal(code, 0);
  },
);

/** An archive of some megabytes, more than SQLite buffers in memory. */
async function writeLarge(folder: string): Promise<string> {
  const store = createMemoryStore();
  const input: readonly Item[] = [{ type: "message", role: "user", content: "long ".repeat(20_000) }];
  for (let count = 0; count < 80; count += 1) await store.commit({ turns: [makeTurn({ input })] });
  const file = join(folder, "large.jsonl");
  await writeFile(file, writeArchive(store.exportRecords()));
  return file;
}

const notGathered =
  /^Nothing was imported: the archive cannot be buffered in the temporary folder (\S+): .*\. Make room there, or set the environment variable TMPDIR to another folder, and import it again\.$/;

test(
  "the command line refuses an archive that does not fit into the temporary folder, and names the folder",
  { skip: noLimits },
  async (context) => {
    const folder = makeFolder(context);
    writeConfig(folder, toConfig());
    const archive = await writeLarge(folder);
    const temporary = makeFolder(context);
    const portico = (limit: string, ...args: readonly string[]) =>
      spawnSync(limiter, [`--fsize=${limit}`, process.execPath, executable, "sessions", ...args], {
        cwd: folder,
        env: { PATH: process.env["PATH"], HOME: folder, TMPDIR: temporary, NODE_COMPILE_CACHE: compiled },
        encoding: "utf8",
      });
    const { status, stderr } = portico("1000000", "import", archive);
    assert.equal(status, 1);
    assert.equal(notGathered.exec(stderr.trimEnd())?.[1], temporary, stderr);
    assert.equal(portico("unlimited", "list", "--outside").stderr, "Nothing is stored outside of sessions.\n");
    assert.equal(portico("unlimited", "import", archive).stdout, "Imported 0 sessions and 80 turns.\n");
  },
);

test(
  "an archive that does not fit into the temporary folder is refused over HTTP as a temporary failure",
  { skip: noLimits },
  async (context) => {
    const folder = makeFolder(context);
    const general = `${token}-general`;
    const program = runProgram(
      context,
      folder,
      "start",
      "--config",
      writeConfig(folder, toConfig({ auth: { token: general } })),
    );
    const address = await program.address();
    const body = await readFile(await writeLarge(folder));
    const send = () =>
      fetch(`${address}/operator/import`, {
        method: "POST",
        headers: { authorization: `Bearer ${general}`, "content-type": "application/x-ndjson" },
        body,
      });
    limitFiles(program.child.pid, 1_000_000);
    const refused = await send();
    const { error } = (await refused.json()) as { readonly error: Readonly<Record<string, string>> };
    assert.deepEqual([refused.status, error["code"]], [503, "store_unavailable"]);
    assert.match(String(error["message"]), notGathered);
    limitFiles(program.child.pid, "unlimited");
    assert.equal((await send()).status, 200);
    assert.equal((await program.stop()).code, 0);
  },
);

const alwaysFull = "/dev/full";

test(
  "a gateway whose output goes to a full disk still starts, reloads and stops",
  { skip: !existsSync(alwaysFull) && `there is no ${alwaysFull} here` },
  async (context) => {
    const folder = makeFolder(context);
    const port = await findFreePort();
    // Such a token causes a warning.
    const http = { port, tokens: [{ name: "app", token: "short" }] };
    const file = writeConfig(folder, toConfig({}, http));
    const full = openSync(alwaysFull, "w");
    context.after(() => closeSync(full));
    const child = spawn(process.execPath, [executable, "start", "--config", file], {
      cwd: folder,
      env: bareEnvironment(folder),
      stdio: ["ignore", full, full],
    });
    context.after(() => child.kill("SIGKILL"));
    const ended = once(child, "exit");
    const address = `http://127.0.0.1:${port}`;
    const statusFor = (own: string) =>
      tell(address, { on: "chat", say: "hello", token: own }).then(
        ({ status }) => status,
        () => undefined,
      );
    const isAlive = () => child.exitCode === null && child.signalCode === null;
    while (isAlive() && (await statusFor(token)) !== 200) await pause(10);
    const other = `${token}-other`;
    writeConfig(folder, toConfig({}, { ...http, auth_token: other }));
    child.kill("SIGHUP");
    while (isAlive() && (await statusFor(other)) !== 200) await pause(10);
    assert.notEqual(await statusFor(token), 200);
    child.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
  },
);
