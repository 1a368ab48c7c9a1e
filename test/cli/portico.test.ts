/** The executable, as a shell runs it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { after } from "node:test";
import { makeFolder } from "../gateway.ts";
import { bareEnvironment, type Ended, executable, runProgramIn } from "../whole/program.ts";
import { begin, runHere, type Scene } from "./screen.ts";
import { noStranger, runAsStranger } from "./stranger.ts";

const root = mkdtempSync(join(tmpdir(), "portico-cli-"));
after(() => rmSync(root, { recursive: true, force: true }));

/** Runs commands that need no process of their own. */
function portico(folder: string, args: readonly string[], env?: Scene["env"]): Promise<Ended> {
  return runHere(folder, args, env && { env });
}

function newFolder(): string {
  return mkdtempSync(join(root, "run-"));
}

function write(folder: string, file: unknown, name = "portico.json"): void {
  writeFileSync(join(folder, name), JSON.stringify(file), { mode: 0o600 });
}

const token = "sk-test-0123456789abcdef";

test("With another server in the environment turns go there, and the curl line has a placeholder for the model.", async () => {
  const given = { OPENAI_API_KEY: "sk-other-0123456789", OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };
  const started = begin(newFolder(), ["start", "--port", "0"], { env: given });
  const text = await started.said("curl ");
  started.signal("SIGTERM");
  assert.equal((await started.ended).code, 0);
  assert.match(
    text,
    /^ {2}adapter {4}openai: OPENAI_API_KEY and .* are set, so turns go to http:\/\/127\.0\.0\.1:1\/v1$/m,
  );
  assert.match(text, /^Try it, with one of its models instead of MODEL:\n {2}curl .*"model":"MODEL"/m);
});

test("A port in use is reported in one sentence with the key, and no token that was not shown is left behind.", async () => {
  const folder = newFolder();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const { code, stderr } = await portico(folder, ["start", "--port", String(port)]);
  server.close();
  assert.equal(code, 1);
  assert.equal(
    stderr,
    `gateway.http.port: port ${port} of 127.0.0.1 is in use by another program; stop it, or choose another port (--port).\n`,
  );
  assert.throws(() => statSync(join(folder, ".portico/token")), { code: "ENOENT" });
});

test("A configuration with problems does not start, and every problem is printed to standard error.", async () => {
  const folder = newFolder();
  write(folder, { gateway: { http: { prot: 1, bind: "nowhere" } } });
  const { code, stdout, stderr } = await portico(folder, ["start"]);
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /^The configuration in \/.*\/portico\.json has 3 problems:\n {2}gateway\.http\.prot: unknown key; did you mean 'port'\?/,
  );
});

test("Overrides are checked by the rules of the file.", async () => {
  const { code, stderr } = await portico(newFolder(), ["start", "--port", "lots", "--bind", "nowhere"]);
  assert.equal(code, 1);
  assert.match(stderr, /^ {2}--port: found the string "lots"; allowed: an integer from 0 to 65535$/m);
  assert.match(stderr, /^ {2}--bind: found the string "nowhere"; allowed: an IPv4 or IPv6 address, .* and a path$/m);
  assert.doesNotMatch(stderr, /gateway\.http/);
});

test("A problem in the file, and not on the command line, is named by its key.", async () => {
  const folder = newFolder();
  write(folder, { gateway: { http: { auth_token: token, port: "lots", bind: "nowhere" } } });
  const { stderr } = await portico(folder, ["start", "--port", "0"]);
  assert.match(stderr, /^The configuration in .* has a problem:\n {2}gateway\.http\.bind: found the string "nowhere"/);
});

test("A risky setting on the command line is named by its option.", async () => {
  const started = begin(newFolder(), ["start", "--port", "0", "--bind", "0.0.0.0"]);
  await started.said("curl ");
  started.signal("SIGTERM");
  const { printed } = await started.ended;
  assert.match(printed, /^ {2}warning {4}--bind: 0\.0\.0\.0 can be reached from other machines/m);
});

test("A local Ollama is used with a model that it has, which the first request names.", async (context) => {
  const asked: (string | undefined)[] = [];
  const ollama = createHttpServer(({ url }, response) => {
    asked.push(url);
    response.end(JSON.stringify({ models: [{ name: "nomic-embed-text:latest" }, { name: "mistral:7b" }] }));
  }).listen(0, "127.0.0.1");
  await once(ollama, "listening");
  context.after(() => ollama.close());
  const host = `127.0.0.1:${(ollama.address() as AddressInfo).port}`;
  const started = runProgramIn(context, newFolder(), { OLLAMA_HOST: host }, "start", "--port", "0");
  const said = await started.said("curl ");
  await started.stop();
  assert.deepEqual(asked, ["/api/tags"]);
  assert.ok(said.includes(`  adapter    ollama: Ollama answers at http://${host}; `), said);
  assert.match(said, /such as mistral:7b$/m);
  assert.match(said, /-d '\{"model":"mistral:7b",/);
});

test("A server that answers too late, or never finishes, is not waited for.", async (context) => {
  const sockets = new Set<Socket>();
  const slow = createHttpServer((_request, response) => void response.write('{"models":'));
  slow.on("connection", (socket) => void sockets.add(socket)).listen(0, "127.0.0.1");
  await once(slow, "listening");
  context.after(() => {
    slow.close();
    for (const socket of sockets) socket.destroy();
  });
  const host = `127.0.0.1:${(slow.address() as AddressInfo).port}`;
  const started = runProgramIn(context, newFolder(), { OLLAMA_HOST: host }, "start", "--port", "0");
  const said = await started.said("curl ");
  await started.stop();
  assert.match(said, /^ {2}adapter {4}echo: .*no Ollama answers$/m);
  assert.ok(sockets.size > 0);
});

test("init writes a file, readable by its owner only, that check accepts, and never overwrites it.", async () => {
  const folder = newFolder();
  const made = await portico(folder, ["init"]);
  assert.equal(made.code, 0, made.stderr);
  const file = join(folder, "portico.json");
  const text = readFileSync(file, "utf8");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const checked = await portico(folder, ["check"]);
  assert.equal(checked.code, 0, checked.stderr);
  assert.doesNotMatch(checked.stderr, /warning/);
  const { gateway } = JSON.parse(checked.stdout) as { gateway: { http: { auth_token: string }; data_dir: string } };
  assert.equal(gateway.http.auth_token, "***");
  assert.equal(gateway.data_dir, join(folder, ".portico"));
  // What it offers in comments is valid too.
  writeFileSync(file, text.replaceAll(/^( *)\/\/ (?=["} ])/gm, "$1"));
  const whole = await portico(folder, ["check"], {
    NOTES_APP_TOKEN: `${token}-notes`,
    PORTICO_OPERATOR_TOKEN: `${token}-operator`,
    OPENAI_API_KEY: "sk-upstream",
  });
  assert.equal(whole.code, 0, whole.stderr);
  assert.match(whole.stdout, /"requests_per_minute": 600/);
  assert.match(whole.stdout, /"default_adapter": "main"/);
  writeFileSync(file, text);
  const again = await portico(folder, ["init"]);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /exists and was left as it is/);
  assert.equal(readFileSync(file, "utf8"), text);
});

test("check finds the file through PORTICO_CONFIG and lists warnings.", async () => {
  const folder = newFolder();
  write(
    folder,
    { gateway: { http: { bind: "0.0.0.0", auth_token: "${SHORT}", endpoints: { compat_chat: true } } } },
    "other.json",
  );
  const { code, stderr } = await portico(folder, ["check"], { PORTICO_CONFIG: "other.json", SHORT: "short" });
  assert.equal(code, 0);
  assert.match(stderr, /^warning: gateway\.http\.bind: 0\.0\.0\.0 can be reached/m);
  assert.match(stderr, /^warning: gateway\.http\.auth_token: shorter than 16/m);
  assert.match(stderr, /other\.json is valid\.$/m);
});

test("A link to a config file that does not exist is a problem, and no request to run without one.", async () => {
  const folder = newFolder();
  symlinkSync("gone.json", join(folder, "portico.json"));
  const { code, stderr } = await portico(folder, ["check"]);
  assert.equal(code, 1);
  assert.match(stderr, /portico\.json: the config file cannot be read \(ENOENT\)/);
});

test("A config file that is named but does not exist is a problem.", async () => {
  const { code, stderr } = await portico(newFolder(), ["check", "--config", "gone.json"]);
  assert.equal(code, 1);
  assert.match(stderr, /gone\.json: the config file cannot be read \(ENOENT\); write one with `portico init`, or name/);
});

test("A config file that is a folder, or may not be read, is a problem with its own remedy.", async (context) => {
  const folder = makeFolder(context);
  const named = await portico(folder, ["check", "--config", "."]);
  assert.equal(named.code, 1);
  assert.match(named.stderr, /the config file cannot be read \(EISDIR\); it is a folder: name the file in it, or name/);
  if (noStranger !== false) return context.diagnostic(noStranger);
  write(folder, { gateway: {} });
  chmodSync(folder, 0o755);
  chmodSync(join(folder, "portico.json"), 0);
  const closed = await runAsStranger(folder, "check");
  assert.equal(closed.code, 1);
  assert.match(
    closed.stderr,
    /portico\.json: the config file cannot be read \(EACCES\); let the gateway's user read it, /,
  );
});

test("init says what to do if it may not write.", { skip: noStranger }, async (context) => {
  const folder = makeFolder(context);
  chmodSync(folder, 0o555);
  const { code, stderr } = await runAsStranger(folder, "init");
  assert.equal(code, 1);
  assert.equal(
    stderr,
    `${join(folder, "portico.json")} cannot be written (EACCES): you may not write in its folder; ` +
      "let its owner do it, or name a file in another folder, as in `portico init FILE`.\n",
  );
  const nowhere = await runAsStranger(folder, "init", "gone/portico.json");
  assert.match(nowhere.stderr, /portico\.json cannot be written \(ENOENT\): its folder does not exist; create it\.\n$/);
});

test(
  "In a deleted folder only commands that need it fail, and say so.",
  { skip: process.platform === "win32" && "Windows does not delete a folder in use" },
  async (context) => {
    const folder = makeFolder(context);
    const gone = join(folder, "gone");
    write(folder, { gateway: { http: { auth_token: token }, adapters: { echo: { type: "echo" } } } });
    const runThere = (...args: readonly string[]) => {
      const script = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"';
      const child = spawn("sh", ["-c", script, "sh", gone, process.execPath, executable, ...args], {
        env: bareEnvironment(root),
      });
      const said = [text(child.stdout), text(child.stderr)] as const;
      return Promise.all([once(child, "close").then(([code]: unknown[]) => code), ...said]);
    };
    assert.deepEqual(await runThere("check"), [
      1,
      "",
      "The configuration has a problem:\n  the current folder: was deleted, or may not be entered (ENOENT); " +
        "change to another one, or name files by absolute paths\n",
    ]);
    const [code, , stderr] = await runThere("check", "--config", join(folder, "portico.json"));
    assert.equal(code, 0, stderr);
    assert.equal((await runThere("--version"))[0], 0);
    assert.equal((await runThere("doctor", "--config", join(folder, "portico.json")))[0], 0);
  },
);

test("check creates every adapter on trial, and names those that cannot be created.", async () => {
  const folder = newFolder();
  const adapters = {
    agent: { type: "command", argv: ["/no/such/program"] },
    typed: { type: "command", argv: ["portico-no-such-program", "-p"] },
    mine: { type: "module", path: "gone.mjs" },
    fine: { type: "echo" },
  };
  write(folder, { gateway: { http: { auth_token: token }, adapters, default_adapter: "fine" } });
  const { code, stdout, stderr } = await portico(folder, ["check"]);
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(
    stderr,
    /^The configuration in \/.*\/portico\.json has 3 problems:\n {2}gateway\.adapters\.agent: .*\/no\/such\/program/,
  );
  assert.match(
    stderr,
    /^ {2}gateway\.adapters\.typed: .*no executable program portico-no-such-program .*Install it, or give its/m,
  );
  assert.match(stderr, /^ {2}gateway\.adapters\.mine: There is no file .*gone\.mjs/m);
});

test(
  "Output that cannot be written is reported as a failure.",
  { skip: !existsSync("/dev/full") && "this machine has no /dev/full" },
  async () => {
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, [executable, "schema"], {
      env: bareEnvironment(root),
      stdio: ["ignore", full, "pipe"],
    });
    closeSync(full);
    const said = text(child.stderr!);
    const [code] = (await once(child, "close")) as [number];
    assert.equal(code, 1);
    assert.match(await said, /^Standard output cannot be written: .*ENOSPC/);
  },
);

test("check without a file creates nothing.", async () => {
  const folder = newFolder();
  assert.equal((await portico(folder, ["check"])).code, 0);
  assert.throws(() => statSync(join(folder, ".portico")), { code: "ENOENT" });
});

test("schema prints JSON.", async () => {
  const { code, stdout } = await portico(newFolder(), ["schema"]);
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as { title: string }).title, "Portico configuration");
});

test("A Node version that is too old is reported in one sentence.", async (context) => {
  const preload = join(newFolder(), "old.cjs");
  writeFileSync(
    preload,
    'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "12.22.12" } });',
  );
  const run = (more = {}) =>
    runProgramIn(context, root, { NODE_OPTIONS: `--require ${preload}`, ...more }, "--version").ended;
  const { code, stdout, stderr } = await run();
  assert.equal(code, 1);
  assert.equal(stdout, "");
  // A user who has run `npm start` is not told to run it.
  assert.equal(
    (await run({ npm_package_name: "portico", npm_lifecycle_event: "start" })).stderr,
    "Portico needs Node 24 or newer, and this is Node 12.22.12: install Node 24, or let this checkout bring its own with " +
      "`npm ci --include=dev`, whose install scripts must be allowed to run.\n",
  );
  assert.equal(
    stderr,
    "Portico needs Node 24 or newer, and this is Node 12.22.12: install Node 24, or run `npm start` in a checkout, which brings its own.\n",
  );
});
