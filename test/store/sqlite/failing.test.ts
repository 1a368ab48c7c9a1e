/** A disk that is full, closed or that fails: no caller is told of a success that was none. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hash } from "node:crypto";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { begin, call, endpoints, hear, type Heard, tell, tellWell } from "../../harness/client.ts";
import { type Gateway, makeFolder, openGateway, say } from "../../harness/house.ts";
import { need } from "../../harness/needs.ts";
import { bareEnvironment, executable, findAddress, runProgram, toConfig, writeConfig } from "../../harness/program.ts";
import { hold } from "../../outlive/outlive.ts";
import { databaseIn, until } from "../aid.ts";

const python = need("python3");
const echo = { gateway: { adapters: { echo: { type: "echo" } } } };
const more = { user: "ann" };

/** How large a file the process may write: it has the effect of a full disk. */
function limitFiles(pid: number, bytes: number): void {
  const program = `
import resource, sys
_, most = resource.prlimit(${pid}, resource.RLIMIT_FSIZE)
resource.prlimit(${pid}, resource.RLIMIT_FSIZE, (${bytes} if ${bytes} >= 0 else most, most))`;
  const { status, stderr } = spawnSync(python.path, ["-c", program], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

/** As a status, or at the end of a stream that had begun, where the wire has a code of its own. */
function isRefused({ status, headers, error, raw }: Heard): void {
  assert.notEqual(error, undefined, raw);
  if (status === 200) return;
  assert.deepEqual([status, error?.["code"], headers.has("retry-after")], [503, "store_unavailable", true], raw);
}

test(
  "while the disk is full no turn succeeds, and it goes on by itself when there is room",
  { skip: python.skip },
  async (context) => {
    const folder = makeFolder(context);
    const program = runProgram(context, folder, "start", "--config", writeConfig(folder, toConfig(echo)));
    const address = await program.address();
    const first = await tellWell(address, { on: "responses", say: "one", more });
    limitFiles(program.child.pid!, 4_096);
    for (const on of endpoints) {
      for (const stream of [false, true]) isRefused(await tell(address, { on, say: "lost", stream, more }));
    }
    isRefused(await tell(address, { on: "chat", say: "lost", more, headers: { "idempotency-key": "k" } }));
    const ready = await call(address, "GET", "/readyz");
    assert.deepEqual([ready.status, ready.body.error?.code], [503, "store_unavailable"]);
    const deleted = await call(address, "DELETE", `/v1/responses/${first.id}`);
    assert.deepEqual([deleted.status, deleted.body.error?.code], [503, "store_unavailable"]);
    assert.equal((await tellWell(address, { on: "chat", say: "not stored" })).text, "not stored");

    limitFiles(program.child.pid!, -1);
    await until(async () => (await call(address, "GET", "/readyz")).status === 200);
    const next = await tellWell(address, { on: "responses", say: "two", more });
    assert.equal(next.headers.get("x-portico-context"), "3 items", "what was refused is not in the session");
    assert.equal((await call(address, "GET", `/v1/responses/${first.id}`)).status, 200);
    const { code, stderr } = await program.stop();
    assert.equal(code, 0);
    assert.match(stderr, /disk/, "the log says why");
  },
);

/** Starts a program for which the kernel refuses to sync any file, then becomes the gateway. */
const withoutSync = `
import ctypes, os, platform, struct, sys
calls = [82, 83] if platform.machine() in ("aarch64", "arm64") else [74, 75]
load, equal, refuse, allow = (0x20, 0, 0, 0), 0x15, (6, 0, 0, 0x00050005), (6, 0, 0, 0x7fff0000)
rules = [load, (equal, 1, 0, calls[0]), (equal, 0, 1, calls[1]), refuse, allow]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
class Program(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
program = Program(len(rules), ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program)): sys.exit("no filter")
os.execv(sys.argv[1], sys.argv[1:])`;

test(
  "after a failed sync no turn succeeds, and the gateway stops with a clear word",
  { skip: python.skip },
  async (context) => {
    const folder = makeFolder(context);
    const config = writeConfig(folder, toConfig(echo));
    const healthy = runProgram(context, folder, "start", "--config", config);
    await tellWell(await healthy.address(), { on: "responses", say: "one", more });
    assert.equal((await healthy.stop()).code, 0);

    const child = spawn(python.path, ["-c", withoutSync, process.execPath, executable, "start", "--config", config], {
      cwd: folder,
      env: bareEnvironment(folder),
    });
    context.after(() => child.kill("SIGKILL"));
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const ended = once(child, "close");
    const isOver = () => child.exitCode !== null || child.signalCode !== null;
    await until(() => stdout.includes("  config ") || isOver());
    if (!isOver()) {
      const told = tell(findAddress(stdout), { on: "responses", say: "two", more }).catch(() => undefined);
      const heard = await told;
      if (heard !== undefined) isRefused(heard);
    }
    const timer = AbortSignal.timeout(3_000);
    const outcome = await Promise.race([ended, once(timer, "abort").then(() => "It goes on.")]);
    assert.notEqual(outcome, "It goes on.");
    assert.notEqual(child.exitCode, 0);
    assert.match(stderr, /disk|sync/);
  },
);

/** Files that are no store of ours. The gateway does not start, says which file and what to do, and changes nothing. */
const strangers: Record<string, readonly [make: (file: string) => void, says: RegExp]> = {
  "of text": [(file) => writeFileSync(file, "a diary\n".repeat(1_000)), /not a database/],
  "of another program": [
    (file) => {
      const database = new DatabaseSync(file);
      database.exec("CREATE TABLE songs (name TEXT)");
      database.close();
    },
    /another program/,
  ],
  "that is a folder": [(file) => mkdirSync(file), /opened/],
};

for (const [what, [make, says]] of Object.entries(strangers)) {
  test(`a file ${what} in the store's place is refused by its name and left as it is`, async (context) => {
    const folder = makeFolder(context);
    const file = databaseIn(folder);
    mkdirSync(dirname(file));
    make(file);
    const before = look(file);
    await assert.rejects(openGateway(context, { folder }), (error: Error) => {
      assert.ok(error.message.includes(file), error.message);
      assert.match(error.message, says);
      return true;
    });
    assert.deepEqual(look(file), before);
  });
}

test("a store that a newer release wrote is refused untouched, with what to do", async (context) => {
  const folder = makeFolder(context);
  const gateway = await openGateway(context, { folder });
  await tellWell(gateway.address, { on: "chat", say: "hi", more });
  await gateway.close();
  const database = new DatabaseSync(databaseIn(folder));
  database.exec("PRAGMA user_version = 999");
  database.close();
  const before = look(databaseIn(folder));
  await assert.rejects(openGateway(context, { folder }), /999.*newer/s);
  assert.deepEqual(look(databaseIn(folder)), before);
});

/** What is in the place of the store: a folder, or the digest of a file and when it was written. */
function look(file: string): unknown {
  const { mtimeMs } = statSync(file);
  return statSync(file).isDirectory() ? "a folder" : [hash("sha256", readFileSync(file)), mtimeMs];
}

test("two gateways never use one file: the second is refused, and the first goes on", async (context) => {
  const folder = makeFolder(context);
  const first = await openGateway(context, { folder });
  await tellWell(first.address, { on: "chat", say: "one", more });
  await assert.rejects(openGateway(context, { folder }), /in use by another gateway/);
  writeConfig(folder, toConfig(echo));
  const { code, stdout, stderr } = await runProgram(context, folder, "start").ended;
  assert.notEqual(code, 0);
  assert.match(stdout + stderr, /in use by another gateway/);
  const heard = await tellWell(first.address, { on: "chat", say: "two", more });
  assert.equal(heard.headers.get("x-portico-history"), "continued");
  await first.close();
  const next = await openGateway(context, { folder });
  assert.equal(
    (await tellWell(next.address, { on: "chat", say: "three", more })).headers.get("x-portico-context"),
    "5 items",
  );
});

const nobody = 65_534;
const isRoot = process.geteuid?.() === 0;

test("a store that the gateway may not write is refused by its name, and it does not start", async (context: TestContext) => {
  const folder = makeFolder(context);
  const gateway = await openGateway(context, { folder });
  await tellWell(gateway.address, { on: "chat", say: "hi", more });
  await gateway.close();
  const file = databaseIn(folder);
  writeConfig(folder, toConfig(echo));
  if (isRoot)
    for (const path of [folder, dirname(file), join(folder, "portico.json"), file]) chownSync(path, nobody, nobody);
  chmodSync(file, 0o400);
  const before = readFileSync(file);
  const stranger = isRoot ? { uid: nobody, gid: nobody } : {};
  const { status, stderr } = spawnSync(process.execPath, [executable, "start"], {
    cwd: folder,
    env: { ...bareEnvironment(folder), NODE_COMPILE_CACHE: "" },
    encoding: "utf8",
    timeout: 20_000,
    ...stranger,
  });
  assert.equal(status, 1, stderr);
  assert.ok(stderr.includes(file), stderr);
  assert.ok(readFileSync(file).equals(before));
});

/** Makes every write to a table fail until the returned function is called. */
function breakTable(folder: string, table: "turn" | "record"): () => void {
  const rename = (from: string, to: string): void => {
    const database = new DatabaseSync(databaseIn(folder), { timeout: 10_000 });
    database.exec(`ALTER TABLE ${from} RENAME TO ${to}`);
    database.close();
  };
  rename(table, "away");
  return () => rename("away", table);
}

test("a session goes on after a background turn that waited for it could not be stored", async (context) => {
  const gateway = await openGateway(context);
  const { address, model } = gateway;
  const held = hold();
  model.script = held.script;
  const first = tellWell(address, { on: "responses", say: "first", more });
  await held.begun;
  const mend = breakTable(gateway.folder, "record");
  const refused = await tell(address, { on: "responses", say: "lost", more: { ...more, background: true } });
  assert.equal(refused.status, 503, refused.raw);
  mend();
  held.go();
  await first;
  const signal = AbortSignal.timeout(20_000);
  assert.equal((await tell(address, { on: "responses", say: "next", more }, signal)).status, 200);
});

test("if a failed turn's partial answer cannot be stored, the error and the log say so", async (context) => {
  const gateway = await openGateway(context);
  gateway.model.script = async function* () {
    yield say("half");
    breakTable(gateway.folder, "turn");
    throw new Error("The model broke.");
  };
  const { error } = await tell(gateway.address, { on: "responses", say: "hi", stream: true, more });
  assert.match(String(error?.["message"]), /The part of the answer that had arrived could not be stored either/);
  await until(() => hasUnkept(gateway));
});

test("if the caller left and the partial answer cannot be stored, the log says so", async (context) => {
  const gateway = await openGateway(context);
  const held = hold();
  gateway.model.script = held.script;
  const response = await begin(gateway.address, { on: "responses", say: "hi", stream: true, more });
  await hear(response, "one");
  breakTable(gateway.folder, "turn");
  response.destroy();
  await until(() => hasUnkept(gateway));
});

const hasUnkept = ({ logged }: Gateway): boolean =>
  logged.some(({ level, message }) => level === "error" && message.includes("could not be stored either"));
