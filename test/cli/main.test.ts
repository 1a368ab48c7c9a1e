/** The command line without a process: what it understands, and how it stops. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after } from "node:test";
import type { House } from "../../src/cli/house.ts";
import { run } from "../../src/cli/main.ts";
import type { StopSignal, Terminal } from "../../src/cli/terminal.ts";
import { adapterOptions } from "../config/house.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-main-"));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(
  join(folder, "portico.json"),
  JSON.stringify({ gateway: { http: { auth_token: "sk-test-0123456789abcdef", endpoints: { compat_chat: true } } } }),
  { mode: 0o600 },
);

function createScreen() {
  const printed: string[] = [];
  const complained: string[] = [];
  const exits: number[] = [];
  const stop = Promise.withResolvers<(signal: StopSignal) => void>();
  let nowMs = Date.parse("2026-01-01T00:00:00Z");
  const terminal: Terminal = {
    folder,
    env: {},
    now: () => new Date(nowMs),
    print: (line) => void printed.push(line),
    complain: (line) => void complained.push(line),
    probe: async () => false,
    onStop: (listener) => stop.resolve(listener),
    exit: (code) => void exits.push(code),
  };
  const pass = (ms: number) => void (nowMs += ms);
  return { terminal, printed, complained, exits, pass, signals: stop.promise };
}

function createHouse(open: House["open"]): House {
  return { adapterOptions: async () => adapterOptions, open };
}

const nobody = createHouse(() => assert.fail("no gateway may be opened"));

for (const [args, message] of [
  [["strat"], "Unknown command 'strat'. Did you mean 'start'? See 'portico help'."],
  [["zzzzzz"], "Unknown command 'zzzzzz'. See 'portico help'."],
  [["--versoin"], "Unknown option '--versoin'. Did you mean '--version'? See 'portico help'."],
  [["start", "--prot", "1"], "Unknown option '--prot'. Did you mean '--port'? See 'portico start --help'."],
  [["start", "--port"], "The option '--port' needs a value."],
  [["start", "--config", "--port", "1"], "The option '--config' needs a value."],
  [["check", "file.json"], "Unexpected argument 'file.json'. See 'portico check --help'."],
  [["help", "chekc"], "Unknown command 'chekc'. Did you mean 'check'? See 'portico help'."],
] as const) {
  test(`'portico ${args.join(" ")}' is not understood, and the answer helps.`, async () => {
    const { terminal, complained } = createScreen();
    assert.equal(await run(args, terminal, nobody), 2);
    assert.deepEqual(complained, [message]);
  });
}

for (const name of ["start", "init", "check", "schema"]) {
  test(`'portico ${name} --help' explains the command and runs nothing.`, async () => {
    const { terminal, printed } = createScreen();
    assert.equal(await run([name, "--help"], terminal, nobody), 0);
    assert.match(printed.join(), new RegExp(`^portico ${name}: [A-Z].*\\.\n\nUsage: portico ${name}`));
    const help = createScreen();
    await run(["help", name], help.terminal, nobody);
    assert.deepEqual(help.printed, printed);
  });
}

test("'portico', 'portico help' and 'portico --help' list the commands.", async () => {
  for (const args of [[], ["help"], ["--help"], ["-h"]]) {
    const { terminal, printed } = createScreen();
    assert.equal(await run(args, terminal, nobody), 0);
    for (const name of ["start", "init", "check", "schema"])
      assert.match(printed.join(), new RegExp(`^ {2}${name} `, "m"));
  }
});

test("A signal drains and ends with 0; one that follows at once is the same wish; a later one ends with 130 or 143.", async () => {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    const { terminal, printed, exits, pass, signals } = createScreen();
    const closing = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const close = () => {
      asked.resolve();
      return closing.promise;
    };
    const ended = run(
      ["start"],
      terminal,
      createHouse(async () => ({ address: "http://127.0.0.1:8600", close })),
    );
    const stop = await signals;
    stop(signal);
    await asked.promise;
    assert.equal(
      printed.at(-1),
      "Draining: running turns have 30 s to end. Another signal after a moment stops at once.",
    );
    pass(499);
    stop(signal);
    assert.deepEqual(exits, []);
    pass(1);
    stop(signal);
    assert.deepEqual(exits, [code]);
    closing.resolve();
    assert.equal(await ended, 0);
  }
});

for (const [code, sentence] of [
  [
    "EADDRINUSE",
    "gateway.http.port: port 8600 of 127.0.0.1 is in use by another program; stop it, or choose another port (--port).",
  ],
  [
    "EACCES",
    "gateway.http.port: no permission to listen on port 8600 of 127.0.0.1; choose a port from 1024 up (--port).",
  ],
  [
    "EADDRNOTAVAIL",
    "gateway.http.bind: this machine has no address 127.0.0.1; choose one of its own, or 127.0.0.1 (--bind).",
  ],
] as const) {
  test(`A listener that fails with ${code} is explained by the key that mends it.`, async () => {
    const { terminal, complained } = createScreen();
    const failing = createHouse(() => Promise.reject(Object.assign(new Error("listen"), { code, syscall: "listen" })));
    assert.equal(await run(["start"], terminal, failing), 1);
    assert.deepEqual(complained, [sentence]);
  });
}

test("A store that cannot be opened is told as the reason.", async () => {
  const { terminal, complained } = createScreen();
  assert.equal(
    await run(
      ["start"],
      terminal,
      createHouse(() => Promise.reject(new Error("the disk is full"))),
    ),
    1,
  );
  assert.deepEqual(complained, ["Portico could not start: the disk is full"]);
});
