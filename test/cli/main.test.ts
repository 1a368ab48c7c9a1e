/** The command line without a process: what it understands, and how it stops. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import test, { after } from "node:test";
import type { Runtime, Running } from "../../src/cli/runtime.ts";
import { run } from "../../src/cli/main.ts";
import { listenForSignals } from "../../src/cli/signals.ts";
import type { Config } from "../../src/config/config.ts";
import { ConfigError, type Problem } from "../../src/config/problem.ts";
import type { Signal, Terminal } from "../../src/cli/terminal.ts";
import { createTerminalIn } from "./screen.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-main-"));
after(() => rmSync(folder, { recursive: true }));
writeFileSync(
  join(folder, "portico.json"),
  JSON.stringify({ gateway: { http: { auth_token: "sk-test-0123456789abcdef", endpoints: { compat_chat: true } } } }),
  { mode: 0o600 },
);

function createScreen({ isInteractive = false } = {}) {
  const printed: string[] = [];
  const complained: string[] = [];
  const prints = createSteps();
  const exits: number[] = [];
  const stop = Promise.withResolvers<(signal: Signal) => void>();
  const shown = Promise.withResolvers<void>();
  let nowMs = Date.parse("2026-01-01T00:00:00Z");
  const terminal: Terminal = {
    ...createTerminalIn(folder),
    now: () => new Date(nowMs),
    print(line) {
      printed.push(line);
      prints.step();
      shown.resolve();
    },
    complain: (line) => void complained.push(line),
    isInteractive,
    onSignal: (listener) => stop.resolve(listener),
    exit: (code) => void exits.push(code),
  };
  const pass = (ms: number) => void (nowMs += ms);
  /** Sends signals as soon as the first line is printed. */
  const signals = shown.promise.then(() => stop.promise);
  return {
    terminal,
    printed,
    complained,
    printsReached: prints.reached,
    exits,
    pass,
    early: stop.promise,
    signals,
  };
}

/** A counter; `reached` resolves when it has come to a number. */
function createSteps() {
  let count = 0;
  let wake: (() => void) | undefined;
  const isBelow = (number: number): boolean => count < number;
  return {
    step(): void {
      count++;
      wake?.();
    },
    async reached(number: number): Promise<void> {
      while (isBelow(number)) await new Promise<void>((resolve) => (wake = resolve));
    },
  };
}

function writeSettings(name: string, http: object, gateway: object = {}): string {
  const endpoints = { compat_chat: true };
  const settings = { gateway: { http: { auth_token: "sk-test-0123456789abcdef", endpoints, ...http }, ...gateway } };
  writeFileSync(join(folder, name), JSON.stringify(settings), { mode: 0o600 });
  return name;
}

/** By default its gateway must not be reloaded. */
function createRuntime(
  open: (config: Config) => Promise<Pick<Running, "address" | "close"> & Partial<Running>>,
): Runtime {
  const reload = () => assert.fail("the gateway may not be reloaded");
  const log = { info: () => assert.fail("nothing is to be logged"), error: () => assert.fail("nothing failed") };
  return {
    tryAdapters: async () => {},
    open: async (config) => ({ log, reload, ...(await open(config)) }),
  };
}

/** Gathers the messages of failures. */
function toLog(failures: string[]): Running["log"] {
  return { info: () => {}, error: (_, message) => void failures.push(message) };
}

const nobody = createRuntime(() => assert.fail("no gateway may be opened"));

for (const [args, message] of [
  [["strat"], "Unknown command 'strat'. Did you mean 'start'? See 'portico help'."],
  [["zzzzzz"], "Unknown command 'zzzzzz'. See 'portico help'."],
  [["--versoin"], "Unknown option '--versoin'. Did you mean '--version'? See 'portico help'."],
  [["start", "--prot", "1"], "Unknown option '--prot'. Did you mean '--port'? See 'portico start --help'."],
  [["start", "--port"], "The option '--port' needs a value."],
  [["start", "--config="], "The option '--config' needs a value."],
  [["start", "--config", "--port", "1"], "The option '--config' needs a value."],
  [["check", "file.json"], "Unexpected argument 'file.json'. See 'portico check --help'."],
  [["token", "help", "mkae"], "Unknown command 'mkae'. Did you mean 'make'? See 'portico token --help'."],
  [["help", "chekc"], "Unknown command 'chekc'. Did you mean 'check'? See 'portico help'."],
] as const) {
  test(`'portico ${args.join(" ")}' is refused with a helpful message.`, async () => {
    const { terminal, complained } = createScreen();
    assert.equal(await run(args, terminal, nobody), 2);
    assert.deepEqual(complained, [message]);
  });
}

for (const name of ["start", "init", "check", "schema", "chat", "doctor", "token make", "token hash", "token rotate"]) {
  test(`'portico ${name} --help' explains the command and runs nothing.`, async () => {
    const { terminal, printed } = createScreen();
    assert.equal(await run([...name.split(" "), "--help"], terminal, nobody), 0);
    assert.match(printed.join(), new RegExp(`^portico ${name}: [A-Z].*\\.\n\nUsage: portico ${name}`));
    const help = createScreen();
    await run(["help", ...name.split(" ")], help.terminal, nobody);
    assert.deepEqual(help.printed, printed);
    assertNarrow(printed);
  });
}

test("Help may be asked for before a command, and between a group and its command.", async () => {
  for (const [args, expected] of [
    [["--help", "start"], /^portico start: /],
    [["token", "help", "make"], /^portico token make: /],
    [["token", "--help", "make", "--name"], /^portico token make: /],
    [["token", "help"], /^portico token: /],
    [["token", "help", "--help"], /^portico token: /],
  ] as const) {
    const { terminal, printed } = createScreen();
    assert.equal(await run(args, terminal, nobody), 0);
    assert.match(printed.join(), expected);
  }
});

test("'portico', 'portico help' and 'portico --help' list the commands.", async () => {
  for (const args of [[], ["help"], ["--help"], ["-h"], ["help", "--help"], ["help", "-h"], ["help", "help"]]) {
    const { terminal, printed } = createScreen();
    assert.equal(await run(args, terminal, nobody), 0);
    for (const name of ["start", "init", "check", "schema", "chat", "sessions", "token", "doctor"])
      assert.match(printed.join(), new RegExp(`^ {2}${name} `, "m"));
    assertNarrow(printed);
  }
});

/** Checks that every line fits into a terminal of the usual width. */
function assertNarrow(printed: readonly string[]): void {
  const lines = printed.flatMap((text) => text.split("\n"));
  assert.deepEqual(
    lines.filter((line) => line.length > 80),
    [],
  );
}

test("A long line of help is indented below its beginning, and no option is separated from its value.", async () => {
  const { terminal, printed } = createScreen();
  await run(["chat", "--help"], terminal, nobody);
  assert.match(
    printed.join(),
    /^Usage: portico chat \[MESSAGE\] \[--session NAME\] \[--model NAME\] \[--url URL\]\n {7}\[--token-file FILE\] \[--config FILE\]$/m,
  );
  assert.match(printed.join(), /^ {2}--url URL {10}The gateway .* or\n {21}unix:\/path\.$/m);
});

test("When npm or npx runs it, the next command is printed in the form for that.", async () => {
  for (const [env, command] of [
    [{}, "portico start"],
    [{ npm_package_name: "portico" }, "npm start"],
    [{ npm_package_name: "another" }, "portico start"],
    [{ npm_command: "exec" }, "npx portico start"],
  ] as const) {
    const { terminal, printed } = createScreen();
    const file = join(folder, `init-${Object.values(env).join()}.json`);
    const here = { ...terminal, env };
    assert.equal(await run(["init", file], here, nobody), 0);
    const dashes = command.startsWith("npm ") ? " --" : "";
    assert.ok(printed.join().endsWith(`Start it: ${command}${dashes} --config ${file}`), printed.join());
  }
});

test("At a terminal a signal drains and ends with 0; one that follows at once is ignored; a later one ends at once.", async () => {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    const { terminal, printed, exits, pass, signals } = createScreen({ isInteractive: true });
    const closing = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const close = () => {
      asked.resolve();
      return closing.promise;
    };
    const ended = run(
      ["start"],
      terminal,
      createRuntime(async () => ({ address: "http://127.0.0.1:8600", close })),
    );
    const stop = await signals;
    stop(signal);
    await asked.promise;
    assert.equal(
      printed.at(-1),
      "Draining: running turns have 30 s to finish. Another signal after a moment stops at once.",
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

test("A signal during the start ends it at once, but SIGHUP is remembered until the gateway runs.", async () => {
  const { terminal, exits, early } = createScreen();
  const opening = Promise.withResolvers<void>();
  const reloaded = Promise.withResolvers<void>();
  const runtime = createRuntime(async () => {
    await opening.promise;
    return { address: "http://127.0.0.1:8600", reload: async () => reloaded.resolve(), close: async () => {} };
  });
  const ended = run(["start"], terminal, runtime);
  const send = await early;
  send("SIGHUP");
  assert.deepEqual(exits, []);
  send("SIGTERM");
  assert.deepEqual(exits, [143]);
  opening.resolve();
  await reloaded.promise;
  send("SIGTERM");
  assert.equal(await ended, 0);
});

test("A SIGHUP is one reload.", async () => {
  const { terminal, early } = createScreen();
  const signals = listenForSignals(terminal);
  signals.begin();
  const send = await early;
  send("SIGHUP");
  assert.equal(await signals.next(), "reload");
  const next = signals.next();
  send("SIGTERM");
  assert.equal(await next, "stop");
  signals.close();
});

test("A gateway that runs outlasts its output.", async () => {
  const { terminal, printed, signals } = createScreen();
  const runtime = createRuntime(async () => ({ address: "http://127.0.0.1:8600", close: async () => {} }));
  const ended = run(["start"], { ...terminal, outlastOutput: () => void printed.push("outlasts") }, runtime);
  (await signals)("SIGTERM");
  assert.equal(await ended, 0);
  assert.equal(printed[0], "outlasts");
});

test("A gateway that does not stop cleanly says why, and ends with 1.", async () => {
  const { terminal, complained, signals } = createScreen();
  const close = () => Promise.reject(new Error("the store could not be closed"));
  const runtime = createRuntime(async () => ({ address: "http://127.0.0.1:8600", close }));
  const ended = run(["start"], terminal, runtime);
  (await signals)("SIGTERM");
  assert.equal(await ended, 1);
  assert.deepEqual(complained, ["Portico did not stop cleanly: the store could not be closed"]);
});

test("A start names the adapter that turns go to, and the others.", async () => {
  const { terminal, printed, signals } = createScreen();
  const runtime = createRuntime(async () => ({ address: "http://127.0.0.1:8600", close: async () => {} }));
  const adapters = { one: { type: "echo" }, two: { type: "echo" }, three: { type: "echo" } };
  const file = writeSettings("several.json", {}, { adapters, default_adapter: "two" });
  const ended = run(["start", "--config", file], terminal, runtime);
  (await signals)("SIGTERM");
  assert.equal(await ended, 0);
  assert.match(printed[0]!, /^ {2}adapter {4}two: type echo, configured; others: one, three$/m);
});

test("A start says where turns are stored, without a password, if it is not in the data folder.", async () => {
  for (const [store, expected] of [
    [
      "redis://me:secret@redis.internal/3?prefix=team",
      /^ {2}store {6}redis:\/\/redis\.internal:6379\/3\?prefix=team$/m,
    ],
    ["sqlite:elsewhere/turns.db", /^ {2}store {6}\/.*\/elsewhere\/turns\.db$/m],
    ["sqlite:.portico/turns.db", /^(?!.* store )/s],
    ["memory:", /^(?!.* store ).*warning {4}gateway\.sessions\.store: /s],
  ] as const) {
    const { terminal, printed, signals } = createScreen();
    const runtime = createRuntime(async () => ({ address: "http://127.0.0.1:8600", close: async () => {} }));
    const file = writeSettings("stored.json", {}, { sessions: { store } });
    const ended = run(["start", "--config", file], terminal, runtime);
    (await signals)("SIGTERM");
    assert.equal(await ended, 0);
    assert.match(printed[0]!, expected);
    assert.doesNotMatch(printed[0]!, /secret/);
  }
});

test("A start says where it listens and what is on; what works but is dangerous is a warning.", async () => {
  const socket = join(folder, "door.sock");
  for (const [args, address, expected, warnings] of [
    [
      ["--config", join(folder, writeSettings("off.json", { endpoints: {}, console: true }))],
      undefined,
      [
        / is running\. No endpoint is on, so no listener is open\.$/m,
        /^ {2}endpoints {2}none \(enable them in gateway\.http\.endpoints\)\n {2}adapter /m,
      ],
      /^ {2}warning {4}gateway\.http\.console: no endpoint is on/m,
    ],
    [
      [
        "--config",
        join(folder, writeSettings("one.json", { endpoints: { compat_responses: true }, auth_token: "short" })),
      ],
      "http://127.0.0.1:8600",
      [/ listens on http:\/\/127\.0\.0\.1:8600\n {2}endpoints {2}\/v1\/responses\n {2}adapter /],
      /^ {2}warning {4}gateway\.http\.auth_token: shorter than 16/m,
    ],
    [
      ["--bind", "0.0.0.0"],
      "http://127.0.0.1:8600",
      [/ listens on http:\/\/127\.0\.0\.1:8600 and every other IPv4 address of this machine\n/],
      /^ {2}warning {4}--bind: 0\.0\.0\.0 can be reached from other machines/m,
    ],
    [
      ["--bind", `unix:${socket}`],
      `unix:${socket}`,
      [
        /^ {2}endpoints {2}\/v1\/chat\/completions, \/v1\/responses\n {2}console {4}\/console\n/m,
        /^ {2}curl --unix-socket \/.*door\.sock http:\/\/localhost\/v1\/chat\/completions -H "Authorization/m,
      ],
      /^(?!.*warning)/s,
    ],
  ] as const) {
    const { terminal, printed, complained, signals } = createScreen();
    const runtime = createRuntime(async () => ({ address, close: async () => {} }));
    const here = { folder: mkdtempSync(join(folder, "described-")) };
    const ended = run(["start", ...args], { ...terminal, ...here }, runtime);
    (await signals)("SIGTERM");
    assert.equal(await ended, 0);
    for (const each of expected) assert.match(printed[0]!, each);
    assert.match(printed[0]!, warnings);
    assert.deepEqual(complained, []);
  }
});

test("SIGHUP reads the configuration of a service again, and the open gateway continues with it.", async () => {
  const { terminal, printed, signals } = createScreen();
  const events: string[] = [];
  const reloaded = createSteps();
  const runtime = createRuntime(async () => ({
    address: "http://127.0.0.1:8600",
    async reload({ http }) {
      events.push(`reload ${http.authToken}`);
      reloaded.step();
    },
    close: async () => void events.push("close"),
  }));
  const file = writeSettings("renewed.json", {});
  const ended = run(["start", "--config", file], terminal, runtime);
  const send = await signals;
  for (const [index, token] of ["sk-second-0123456789", "sk-third-0123456789"].entries()) {
    writeSettings("renewed.json", { auth_token: token });
    send("SIGHUP");
    await reloaded.reached(index + 1);
  }
  send("SIGTERM");
  assert.equal(await ended, 0);
  assert.deepEqual(events, ["reload sk-second-0123456789", "reload sk-third-0123456789", "close"]);
  assert.match(printed[1]!, /^Reloaded: new requests see the new configuration, .*\nPortico \S+ listens on http/);
});

test("A gateway that cannot apply a configuration continues as before, and says so to the operator and in its log.", async () => {
  const { terminal, printed, complained, signals, printsReached } = createScreen();
  const logged: string[] = [];
  const runtime = createRuntime(async () => ({
    address: "http://127.0.0.1:8600",
    log: toLog(logged),
    reload: () => Promise.reject(new Error("The adapter 'agent' cannot be used: it is gone")),
    close: async () => {},
  }));
  const ended = run(["start"], terminal, runtime);
  const send = await signals;
  send("SIGHUP");
  await printsReached(2);
  const why = "The adapter 'agent' cannot be used: it is gone";
  assert.equal(printed[1], `${why}\nThe gateway continues with its old configuration.`);
  assert.deepEqual(logged, [`The gateway continues with its old configuration. ${why}`]);
  assert.deepEqual(complained, []);
  send("SIGTERM");
  assert.equal(await ended, 0);
});

test("SIGHUP with another address opens a new gateway when the turns of the old one have ended, and says why.", async () => {
  const { terminal, printed, signals } = createScreen();
  const events: string[] = [];
  const opened = createSteps();
  const runtime = createRuntime(async ({ http }) => {
    events.push(`open ${http.bind}`);
    opened.step();
    return { address: `http://${http.bind}:8600`, close: async () => void events.push(`close ${http.bind}`) };
  });
  const file = writeSettings("changing.json", { bind: "127.0.0.1" });
  const ended = run(["start", "--config", file], terminal, runtime);
  const send = await signals;
  writeSettings("changing.json", { bind: "127.0.0.2" });
  send("SIGHUP");
  await opened.reached(2);
  send("SIGTERM");
  assert.equal(await ended, 0);
  assert.deepEqual(events, ["open 127.0.0.1", "close 127.0.0.1", "open 127.0.0.2", "close 127.0.0.2"]);
  assert.match(
    printed.join("\n"),
    /^Reloading: gateway\.http\.bind changed, which needs a restart; running turns have 30 s to finish\.\nPortico \S+ listens on http:\/\/127\.0\.0\.2/m,
  );
});

test("SIGHUP with a wrong configuration, or an unusable adapter, lists every problem and changes nothing.", async () => {
  const { terminal, printed, signals, printsReached } = createScreen();
  let opened = 0;
  let faults: readonly Problem[] = [];
  const runtime: Runtime = {
    ...createRuntime(async () => {
      opened++;
      return { address: "http://127.0.0.1:8600", log: toLog([]), close: async () => {} };
    }),
    async tryAdapters({ file }) {
      if (faults.length > 0) throw new ConfigError(faults, file);
    },
  };
  const file = writeSettings("breaking.json", {});
  const ended = run(["start", "--config", file], terminal, runtime);
  const send = await signals;
  writeSettings("breaking.json", { prot: 1, bind: "nowhere" });
  send("SIGHUP");
  await printsReached(2);
  assert.match(
    printed[1]!,
    /^The configuration in .*breaking\.json has 2 problems:\n.*prot.*\n.*bind.*\nThe gateway continues with its old configuration\.$/,
  );
  writeSettings("breaking.json", {});
  faults = [{ path: "gateway.adapters.agent", message: "there is no such program" }];
  send("SIGHUP");
  await printsReached(3);
  assert.match(
    printed[2]!,
    /gateway\.adapters\.agent: there is no such program\nThe gateway continues with its old configuration\.$/,
  );
  assert.equal(opened, 1);
  send("SIGTERM");
  assert.equal(await ended, 0);
});

test("A configuration with which the gateway cannot restart is replaced by the previous one.", async () => {
  const { terminal, printed, signals, printsReached } = createScreen();
  const binds: string[] = [];
  const runtime = createRuntime(async ({ http: { bind } }) => {
    binds.push(bind);
    if (bind !== "127.0.0.1") throw Object.assign(new Error("listen"), { code: "EADDRNOTAVAIL", syscall: "listen" });
    return { address: "http://127.0.0.1:8600", log: toLog([]), close: async () => {} };
  });
  const file = writeSettings("failing.json", { bind: "127.0.0.1" });
  const ended = run(["start", "--config", file], terminal, runtime);
  const send = await signals;
  writeSettings("failing.json", { bind: "127.0.0.9" });
  send("SIGHUP");
  await printsReached(3);
  assert.deepEqual(binds, ["127.0.0.1", "127.0.0.9", "127.0.0.1"]);
  assert.match(
    printed[2]!,
    /this machine has no address 127\.0\.0\.9.*\nThe gateway continues with its old configuration/,
  );
  send("SIGTERM");
  assert.equal(await ended, 0);
});

test("A gateway that can restart neither with the new configuration nor with the previous one ends with 1.", async () => {
  const { terminal, complained, signals } = createScreen();
  let opened = 0;
  const runtime = createRuntime(async () => {
    if (++opened > 1) throw new Error(`the store is gone, ${opened}`);
    return { address: "http://127.0.0.1:8600", close: async () => {} };
  });
  const file = writeSettings("ending.json", { port: 8600 });
  const ended = run(["start", "--config", file], terminal, runtime);
  const send = await signals;
  writeSettings("ending.json", { port: 8601 });
  send("SIGHUP");
  assert.equal(await ended, 1);
  assert.deepEqual(complained, [
    "Portico could not start: the store is gone, 2\nPortico could not start: the store is gone, 3",
  ]);
});

test("A gateway that is stopped while it reloads stops.", async () => {
  const { terminal, signals } = createScreen();
  const closing = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let opened = 0;
  const runtime = createRuntime(async () => {
    opened++;
    const close = () => {
      asked.resolve();
      return closing.promise;
    };
    return { address: "http://127.0.0.1:8600", close };
  });
  const file = writeSettings("moving.json", { port: 8600 });
  const ended = run(["start", "--config", file], terminal, runtime);
  const send = await signals;
  writeSettings("moving.json", { port: 8601 });
  send("SIGHUP");
  await asked.promise;
  send("SIGTERM");
  closing.resolve();
  assert.equal(await ended, 0);
  assert.equal(opened, 1);
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
  ["ENOTFOUND", "gateway.http.bind: cannot listen on 127.0.0.1, port 8600: listen"],
] as const) {
  test(`A listener that fails with ${code} is explained with the key that solves it.`, async () => {
    const { terminal, complained } = createScreen();
    const failing = createRuntime(() =>
      Promise.reject(Object.assign(new Error("listen"), { code, syscall: "listen" })),
    );
    assert.equal(await run(["start"], terminal, failing), 1);
    assert.deepEqual(complained, [sentence]);
  });
}

test("Of two first starts in one folder, one that fails leaves the token of the other.", async () => {
  const here = { folder: mkdtempSync(join(folder, "fresh-")) };
  const [failing, other] = [createScreen(), createScreen()];
  const opening = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const late = createRuntime(async () => {
    opening.resolve();
    await started.promise;
    throw new Error("the store is in use by another gateway");
  });
  const runtime = createRuntime(async () => ({ address: "http://127.0.0.1:8600", close: async () => {} }));
  const failed = run(["start"], { ...failing.terminal, ...here }, late);
  await opening.promise;
  const ended = run(["start"], { ...other.terminal, ...here }, runtime);
  const send = await other.signals;
  started.resolve();
  assert.equal(await failed, 1);
  const stored = readFileSync(join(here.folder, ".portico/token"), "utf8").trim();
  assert.ok(other.printed[0]?.includes(`  token      ${stored}  (shown only now;`));
  send("SIGTERM");
  assert.equal(await ended, 0);
});

test("If the token's file was deleted, a reload generates another token and stores it.", async () => {
  const here = { folder: mkdtempSync(join(folder, "deleted-")) };
  const file = join(here.folder, ".portico/token");
  const { terminal, signals } = createScreen();
  const reloaded = Promise.withResolvers<string | undefined>();
  const runtime = createRuntime(async () => ({
    address: "http://127.0.0.1:8600",
    reload: async ({ auth }) => reloaded.resolve(auth.token),
    close: async () => {},
  }));
  const ended = run(["start"], { ...terminal, ...here }, runtime);
  const send = await signals;
  const first = readFileSync(file, "utf8");
  rmSync(file);
  send("SIGHUP");
  const second = await reloaded.promise;
  assert.equal(readFileSync(file, "utf8"), `${second}\n`);
  assert.notEqual(readFileSync(file, "utf8"), first);
  send("SIGTERM");
  assert.equal(await ended, 0);
});

test("A token that was rotated stays so if the gateway can restart only with the previous configuration.", async () => {
  const here = { folder: mkdtempSync(join(folder, "rotated-")) };
  const { terminal, signals, printed, printsReached } = createScreen();
  const runtime = createRuntime(async ({ file }) => {
    if (file !== undefined) throw new Error("the port is in use");
    return { address: "http://127.0.0.1:8600", log: toLog([]), close: async () => {} };
  });
  const ended = run(["start"], { ...terminal, ...here }, runtime);
  const send = await signals;
  assert.equal(await run(["token", "rotate"], { ...terminal, ...here }), 0);
  const rotated = readFileSync(join(here.folder, ".portico/token"), "utf8");
  writeSettings(join(relative(folder, here.folder), "portico.json"), { port: 8601 });
  send("SIGHUP");
  await printsReached(4);
  assert.equal(readFileSync(join(here.folder, ".portico/token"), "utf8"), rotated);
  send("SIGTERM");
  assert.equal(await ended, 0);
  assert.equal(printed.filter((line) => line.includes("shown only now")).length, 2, "each token is shown once");
});

test("A start that cannot store its token closes the gateway again, and says why.", async () => {
  const here = { folder: mkdtempSync(join(folder, "blocked-")) };
  const { terminal, complained } = createScreen();
  let closed = 0;
  const runtime = createRuntime(async ({ dataDir }) => {
    writeFileSync(dataDir, "");
    const close = () => Promise.reject(new Error(`closed ${++closed} times`));
    return { address: "http://127.0.0.1:8600", close };
  });
  assert.equal(await run(["start"], { ...terminal, ...here }, runtime), 1);
  assert.equal(closed, 1);
  assert.match(complained.join(), /^Portico could not start: .*the generated token cannot be stored \(E/);
});

test("A store that cannot be opened is reported as the reason.", async () => {
  const { terminal, complained } = createScreen();
  assert.equal(
    await run(
      ["start"],
      terminal,
      createRuntime(() => Promise.reject(new Error("the disk is full"))),
    ),
    1,
  );
  assert.deepEqual(complained, ["Portico could not start: the disk is full"]);
});
