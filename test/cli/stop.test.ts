/** How a gateway ends and changes: signals, sockets that were left, and what systemd runs. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { request as send } from "node:http";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { endpoints, paths, readAnswer, tellWell, toRequest } from "../harness/client.ts";
import { findFreePort, makeFolder, openGateway } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { root, runNpm, runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { beginHeld, startHeld } from "./held.ts";
import { isOpen, until } from "./shared.ts";

test("SIGTERM lets running streams end, refuses new connections meanwhile, and exits with 0", async (context) => {
  const model = await startHeld(context, "model");
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ gateway: { adapters: model.adapters } }));
  const program = runProgram(context, folder, "start");
  const address = await program.address();
  const streams = await Promise.all(endpoints.map((on) => beginHeld(address, on)));
  await until(() => model.received.length === 2);
  const ended = program.stop("SIGTERM");
  await until(async () => !(await isOpen(Number(new URL(address).port))));
  assert.ok(!streams.some((stream) => stream.isOver()), "the streams still run");
  model.release();
  for (const [index, on] of endpoints.entries()) {
    const heard = readAnswer({ on, say: "wait", stream: true }, 200, new Headers(), await streams[index]!.all);
    assert.deepEqual([heard.text, heard.error], ["model: waited", undefined]);
  }
  assert.equal((await ended).code, 0);
});

test("npm start passes its arguments on, and Ctrl-C, which npm and the terminal both send, lets a stream end", async (context) => {
  const model = await startHeld(context, "model");
  const folder = makeFolder(context);
  const file = writeConfig(folder, toConfig({ gateway: { adapters: model.adapters } }));
  const port = await findFreePort();
  const program = runNpm(context, folder, "start", "--", "--config", file, "--port", String(port));
  const address = await program.address();
  assert.equal(address, `http://127.0.0.1:${port}`);
  const stream = await beginHeld(address, "chat");
  const ended = program.stop("SIGINT");
  await until(async () => !(await isOpen(port)));
  model.release();
  assert.match(await stream.all, /"content":"waited".*\[DONE\]\n\n$/s);
  await ended;
});

/** Asks the chat endpoint over a unix socket. */
async function tellOver(socketPath: string): Promise<number | undefined> {
  const { method, headers, body } = toRequest({ on: "chat", say: "hi" });
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const asked = send({ socketPath, path: paths.chat, method, headers }, (response) => {
    response.resume().on("end", () => resolve(response.statusCode));
  });
  asked.on("error", reject).end(body);
  return promise;
}

for (const mode of ["600", "660"]) {
  test(`a gateway listens on a unix socket of mode ${mode}`, async (context) => {
    const folder = makeFolder(context);
    const http = { bind: "unix:portico.sock", ...(mode !== "600" && { socket_mode: mode }) };
    const { address } = await openGateway(context, { http, folder });
    const socket = join(folder, "portico.sock");
    assert.equal(address, `unix:${socket}`, "relative to the config file");
    assert.equal((statSync(socket).mode & 0o777).toString(8), mode);
    assert.equal(await tellOver(socket), 200);
  });
}

test("a socket that a killed gateway left is replaced, one in use is not, nor a file of another kind", async (context) => {
  const folder = makeFolder(context);
  const socket = join(folder, "portico.sock");
  const http = { bind: `unix:${socket}` };
  writeConfig(folder, toConfig({ http }));
  const killed = runProgram(context, folder, "start");
  await killed.address();
  await killed.stop("SIGKILL");
  assert.ok(statSync(socket).isSocket());

  const second = await openGateway(context, { http, folder });
  assert.equal(await tellOver(socket), 200);
  await assert.rejects(openGateway(context, { http }));
  assert.equal(await tellOver(socket), 200);
  await second.close();
  assert.throws(() => statSync(socket), { code: "ENOENT" });

  writeFileSync(socket, "precious");
  await assert.rejects(openGateway(context, { http }));
  assert.equal(readFileSync(socket, "utf8"), "precious");
});

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === "::1"));

for (const [bind, shown] of [
  ["::1", /^http:\/\/\[::1\]:\d+$/],
  ["localhost", /^http:\/\/(localhost|127\.0\.0\.1|\[::1\]):\d+$/],
  ["0.0.0.0", /^http:\/\/\S+:\d+$/],
  ["::", /^http:\/\/\S+:\d+$/],
] as const) {
  const skip = bind.includes(":") && !hasIpv6 && "this machine has no ::1";
  test(`a gateway listens on ${bind}`, { skip }, async (context) => {
    const { address } = await openGateway(context, { http: { bind } });
    assert.match(address, shown);
    const reached = bind.includes(":") ? `http://[::1]:${new URL(address).port}` : address;
    assert.equal((await tellWell(reached, { on: "chat", say: "hi" })).text, "re: hi");
  });
}

const systemd = need("systemd-analyze");

test("the unit of the documentation passes systemd's verification", { skip: systemd.skip }, (context) => {
  const page = readFileSync(join(root, "docs/operating.md"), "utf8");
  const [, unit = ""] = /^```ini\n(.*?)^```$/ms.exec(page) ?? [];
  assert.match(unit, /^ExecStart=\S+ \S+portico\.js start /m);
  const folder = makeFolder(context);
  const file = join(folder, "portico.service");
  // The checkout's own path may have characters that a unit would have to quote.
  symlinkSync(root, join(folder, "checkout"));
  writeFileSync(file, unit.replaceAll("/srv/portico/", join(folder, "checkout/")), { mode: 0o644 });
  const { stderr } = spawnSync(systemd.path, ["verify", file], { encoding: "utf8" });
  // What it reports about the machine's own units does not matter.
  const said = stderr.split("\n").filter((line) => line.includes("portico.service"));
  assert.deepEqual(said, []);
});
