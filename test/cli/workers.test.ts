/** `gateway.workers`: several processes that are one gateway to whoever calls, signals, reloads or measures it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { request as send } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { call, endpoints, paths, readAll, readAnswer, tell, toRequest } from "../harness/client.ts";
import { makeFolder, openPortico, operatorToken, type Options, token, toSettings } from "../harness/house.ts";
import { newDatabase } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { beginHeld, type Held, startHeld } from "./held.ts";
import { until } from "./shared.ts";

/** The model `pid` says which process answers; every other one is held. */
const pidAdapter = `export default () => ({
  async *stream() {
    yield [{ type: "text", text: String(process.pid) }];
  },
});`;

/** A gateway of two workers, in a folder with its file. */
async function start(context: TestContext, options: Options = {}) {
  const folder = makeFolder(context);
  const model = await startHeld(context, "model");
  const store = await newDatabase(context);
  writeFileSync(join(folder, "pid.mjs"), pidAdapter);
  const toOptions = (more: Options): Options => ({
    ...more,
    gateway: {
      workers: 2,
      sessions: { store },
      adapters: { ...model.adapters, pid: { type: "module", path: "pid.mjs" } },
      default_adapter: "model",
      models: { pid: "pid" },
      ...more.gateway,
    },
  });
  const write = (more: Options) => writeConfig(folder, toConfig(toOptions(more)));
  write(options);
  const program = runProgram(context, folder, "start");
  let logged = "";
  program.child.stderr!.on("data", (text: string) => (logged += text));
  return { folder, model, write, program, address: await program.address(), logged: () => logged };
}

/** Every worker gets its share of new connections. */
const anew = { connection: "close" };

const ask = async (address: string, own = token) =>
  tell(address, { on: "chat", say: "hi", token: own, headers: anew, more: { model: "pid" } });

/** The processes that answer, once there are two that are not among `others`. */
async function findWorkers(address: string, count = 2, others: readonly number[] = []): Promise<number[]> {
  const pids = new Set<number>();
  await until(async () => {
    const { status, text, raw } = await ask(address);
    assert.equal(status, 200, raw);
    if (!others.includes(Number(text))) pids.add(Number(text));
    return pids.size === count;
  });
  return [...pids];
}

async function readFigures(address: string): Promise<ReadonlyMap<string, number>> {
  const { raw } = await call(address, "GET", "/metrics", undefined, { token: operatorToken, headers: anew });
  const lines = raw.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(lines.map((line) => [line.replace(/ \S+$/, ""), Number(line.split(" ").at(-1))]));
}

/** Two streams, of which each worker has one. */
async function holdBoth(address: string, model: Held) {
  const streams = await Promise.all(endpoints.map((on) => beginHeld(address, on)));
  await until(() => model.received.length === 2);
  return streams;
}

const answered = 'portico_requests_total{path="/v1/chat/completions",status="200"}';

test("workers answer on one port, and any of them tells what all have counted", async (context) => {
  const { address, program } = await start(context);
  const pids = await findWorkers(address);
  assert.ok(!pids.includes(program.child.pid!));
  const before = (await readFigures(address)).get(answered)!;
  for (let turns = 0; turns < 10; turns++) await ask(address);
  const isTold = async () => (await readFigures(address)).get(answered) === before + 10;
  await until(isTold);
  assert.ok(await isTold(), "the next worker tells the same");
  const figures = await readFigures(address);
  assert.equal(figures.get("portico_store_ready"), 1);
  assert.equal(figures.get('portico_adapter_turns_total{adapter="pid",outcome="completed"}'), before + 10);
  const parts = ["1", "2"].map((worker) => figures.get(`process_start_time_seconds{worker="${worker}"}`));
  assert.ok(parts[0]! > 0 && parts[1]! > 0 && parts[0] !== parts[1]);
  assert.equal((await program.stop()).code, 0);
});

test("workers share a unix socket, which has its mode and is gone at the end", async (context) => {
  const { folder, address, program } = await start(context, {
    http: { bind: "unix:portico.sock", socket_mode: "660" },
  });
  const socketPath = join(folder, "portico.sock");
  assert.equal(address, `unix:${socketPath}`);
  assert.equal(statSync(socketPath).mode & 0o777, 0o660);
  const wish = { on: "chat", say: "hi", headers: anew, more: { model: "pid" } } as const;
  const pids = new Set<string>();
  await until(async () => {
    const { method, headers, body } = toRequest(wish);
    const [response] = await once(send({ socketPath, path: paths.chat, method, headers }).end(body), "response");
    pids.add(readAnswer(wish, response.statusCode, new Headers(), await readAll(response)).text);
    return pids.size === 2;
  });
  assert.equal((await program.stop()).code, 0);
  assert.ok(!existsSync(socketPath));
});

test("a worker that dies is replaced and logged, the others answer meanwhile, and no sum falls", async (context) => {
  const { address, program, logged } = await start(context);
  const [killed = 0, other = 0] = await findWorkers(address);
  await until(async () => (await readFigures(address)).get(answered)! >= 2);
  const before = (await readFigures(address)).get(answered)!;
  process.kill(killed, "SIGKILL");
  // Nobody who comes just now waits for ever.
  const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => ask(address)));
  assert.ok(outcomes.some((outcome) => outcome.status === "fulfilled" && Number(outcome.value.text) === other));
  await until(() => logged().includes("A worker ended (SIGKILL)"));
  for (let turns = 0; turns < 4; turns++) assert.notEqual(Number((await ask(address)).text), killed);
  assert.notEqual((await findWorkers(address, 1, [killed, other]))[0], other);
  assert.ok((await readFigures(address)).get(answered)! >= before);
  const { code, stderr } = await program.stop();
  assert.equal(code, 0);
  for (const line of stderr.trim().split("\n")) assert.ok(JSON.parse(line), "standard error has the log alone");
});

test("SIGTERM, be it to the parent or to every process, lets running streams end, and the exit code is 0", async (context) => {
  const { address, model, program } = await start(context);
  const pids = await findWorkers(address);
  const streams = await holdBoth(address, model);
  for (const pid of pids) process.kill(pid, "SIGTERM");
  const ended = program.stop("SIGTERM");
  await program.said("Draining");
  await until(async () =>
    ask(address).then(
      ({ status }) => status === 503,
      () => true,
    ),
  );
  assert.ok(!streams.some((stream) => stream.isOver()), "the streams still run");
  model.release();
  for (const stream of streams) assert.match(await stream.all, /waited.*\[DONE\]\n\n$/s);
  const { code, stdout } = await ended;
  assert.equal(code, 0);
  assert.equal(stdout.match(/Draining/g)?.length, 1);
});

test("a second signal after a moment stops every worker at once", async (context) => {
  const { address, model, program } = await start(context);
  const cut = Promise.allSettled((await holdBoth(address, model)).map((stream) => stream.all));
  let isOver = false;
  // Its output ends with the last process that has it.
  void program.ended.then(() => (isOver = true));
  await until(() => {
    program.child.kill("SIGTERM");
    return isOver;
  });
  assert.equal((await program.ended).code, 143);
  assert.deepEqual(
    (await cut).map(({ status }) => status),
    ["rejected", "rejected"],
  );
});

test("workers whose parent is killed let running streams end, and end themselves", async (context) => {
  const { address, model, program } = await start(context);
  const streams = await holdBoth(address, model);
  const ended = program.stop("SIGKILL");
  await until(async () =>
    ask(address).then(
      () => false,
      () => true,
    ),
  );
  assert.ok(!streams.some((stream) => stream.isOver()));
  model.release();
  for (const stream of streams) assert.match(await stream.all, /waited.*\[DONE\]\n\n$/s);
  // Its output ends with the last process that has it.
  await ended;
});

test("SIGHUP reaches all workers and is told once; a file that is wrong changes none of them, and it says why", async (context) => {
  const { address, model, program, write } = await start(context);
  const renewed = `${token}-new`;
  const statuses = async (own: string) => {
    const all = await Promise.all(Array.from({ length: 4 }, async () => (await ask(address, own)).status));
    return [...new Set(all)];
  };
  write({ http: { auth_token: renewed } });
  program.child.kill("SIGHUP");
  await program.said("Reloaded");
  assert.deepEqual([await statuses(token), await statuses(renewed)], [[401], [200]]);
  for (const [wrong, why] of [
    [{ http: { prot: 1 } }, "gateway.http.prot"],
    [{ gateway: { adapters: { ...model.adapters, pid: { type: "module", path: "/no/such.mjs" } } } }, "/no/such.mjs"],
    [{ gateway: { workers: 3 } }, "restart can change gateway.workers"],
  ] as const) {
    write(wrong);
    program.child.kill("SIGHUP");
    await program.said(why);
    assert.deepEqual([await statuses(token), await statuses(renewed)], [[401], [200]], why);
  }
  const [killed = 0, other = 0] = await findWorkersWith(renewed);
  process.kill(killed, "SIGKILL");
  await until(async () => ![killed, other].includes(await ask(address, renewed).then(toPid, () => other)));
  assert.deepEqual(await statuses(renewed), [200], "a new worker has what the others have");
  const { code, stdout } = await program.stop();
  assert.equal(code, 0);
  assert.equal(stdout.match(/Reloaded/g)?.length, 1);

  async function findWorkersWith(own: string): Promise<number[]> {
    const pids = new Set<number>();
    await until(async () => pids.add(toPid(await ask(address, own))).size === 2);
    return [...pids];
  }
});

const toPid = ({ text }: { readonly text: string }): number => Number(text);

test("each worker has its part of what a process counts for itself, and the start says so", async (context) => {
  const tokens = [{ name: "app", token: "sk-app-0123456789abcdef", limits: { requests_per_minute: 3 } }];
  const { address, model, program } = await start(context, { http: { tokens }, limits: { max_concurrent_turns: 2 } });
  assert.match(await program.said("  config "), /^ {2}workers +2 .*1\/2 .*limits/m);
  await holdBoth(address, model);
  for (let turns = 0; turns < 4; turns++) assert.equal((await ask(address)).status, 503);
  model.release();
  await until(async () => (await readFigures(address)).get("portico_turns_running") === 0);
  const statuses = [];
  for (let turns = 0; turns < 8; turns++) statuses.push((await ask(address, tokens[0]!.token)).status);
  assert.deepEqual(statuses.toSorted(), [200, 200, 200, 200, 429, 429, 429, 429], "3 are rounded up to 2 for each");
});

test("a first start that fails is told in one sentence, and is not tried again", async (context) => {
  const folder = makeFolder(context);
  const server = createServer().listen(0, "127.0.0.1");
  context.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const gateway = { workers: 2, sessions: { store: await newDatabase(context) } };
  writeConfig(folder, toConfig({ gateway, http: { port } }));
  const { code, stdout, stderr } = await runProgram(context, folder, "start").ended;
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, new RegExp(`^gateway\\.http\\.bind.*port: .*${port}.*--port.*\n$`));
});

test("a program that embeds the gateway is one process, and is told so", async (context) => {
  const gateway = { workers: 2, sessions: { store: await newDatabase(context) } };
  const opened = openPortico(toSettings({ gateway }), { folder: makeFolder(context), env: {} });
  await assert.rejects(opened, { name: "ConfigError", message: /gateway\.workers: .*one process/ });
});

test("a worker is not for the command line", async (context) => {
  const { code, stderr } = await runProgram(context, makeFolder(context), "worker").ended;
  assert.equal(code, 2);
  assert.match(stderr, /portico start.*gateway\.workers/);
});
