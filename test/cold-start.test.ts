/** What a start does not wait for: code that its configuration does not need. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeFolder } from "./gateway.ts";

const root = new URL("..", import.meta.url);

/** Opens a gateway in its own process, and returns the modules that were loaded before it listened. */
function modulesOf(adapter: object): readonly string[] {
  const settings = {
    gateway: {
      http: { port: 0, auth_token: "sk-test-0123456789abcdef", endpoints: { compat_chat: true } },
      adapters: { only: adapter },
      sessions: { store: "memory:" },
      log: { level: "silent" },
    },
  };
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({
      load(url, context, next) {
        if (!process.getActiveResourcesInfo().includes("TCPServerWrap")) loaded.push(url);
        return next(url, context);
      },
    });
    const { openPortico } = await import(${JSON.stringify(new URL("src/index.ts", root).href)});
    const portico = await openPortico(${JSON.stringify(settings)});
    process.stdout.write(JSON.stringify([...loaded, ...process.moduleLoadList]));
    await portico.close();
  `;
  const child = spawnSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8" });
  assert.equal(child.status, 0, child.stderr);
  return JSON.parse(child.stdout) as string[];
}

const loaded = modulesOf({ type: "openai", base_url: "http://127.0.0.1:9/v1", context_window: 1000 });

test("a start loads the code of the configured adapters, and of the others only the options", () => {
  const code = loaded.flatMap((url) => /\/src\/adapters\/([\w-]+)\/(?!options\.ts)[^/]+$/.exec(url)?.[1] ?? []);
  assert.deepEqual([...new Set(code)].toSorted(), ["http", "openai"]);
});

const validators = /\/node_modules\/(typebox|gpt-tokenizer)\//;

test("a start loads neither the validators of archives and schemas nor the vocabulary for counting tokens", () => {
  assert.ok(loaded.some((url) => url.includes("/node_modules/undici/")));
  for (const modules of [loaded, modulesOf({ type: "echo" })]) {
    assert.deepEqual(
      modules.filter((url) => validators.test(url)),
      [],
    );
  }
});

test("a start loads no library that is needed only for a first log line, a first scrape or a first connection", () => {
  assert.deepEqual(
    loaded.filter((url) => /\/node_modules\/(pino|prom-client|ws|@redis)\/|\/src\/stores\/redis/.test(url)),
    [],
  );
});

test("a command loads neither the code of another nor the platform's fetch", () => {
  const watch = `
    process.on("exit", () => process.stderr.write(process.moduleLoadList.join(" ")));
    import { registerHooks } from "node:module";
    registerHooks({
      load(url, context, next) {
        if (/\\/src\\/cli\\/\\w+\\.ts$/.test(url)) process.stderr.write(url.split("/").at(-1) + " ");
        return next(url, context);
      },
    });`;
  const bin = fileURLToPath(new URL("bin/portico.js", root));
  const args = ["--import", `data:text/javascript,${encodeURIComponent(watch)}`, bin, "token", "--help"];
  const { stderr, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  assert.match(stdout, /^portico token/);
  const commands = ["start", "init", "check", "schema", "chat", "sessions", "token", "doctor"];
  assert.deepEqual(
    commands.filter((name) => stderr.includes(`${name}.ts `)),
    ["token"],
  );
  assert.match(stderr, /NativeModule fs\b/);
  assert.doesNotMatch(stderr, /deps\/undici/);
});

test("a start loads only the needed part of an HTTP client: no fetch, neither the platform's nor a package's", () => {
  assert.ok(loaded.some((url) => url.endsWith("/node_modules/undici/lib/dispatcher/pool.js")));
  assert.deepEqual(
    loaded.filter((name) => /\/node_modules\/undici\/(index\.js|lib\/web\/fetch)|deps\/undici/.test(name)),
    [],
  );
});

test("compiled code is cached in the user's own folder, and never where others could plant code", (context) => {
  const folder = makeFolder(context);
  const [home, temporary] = [join(folder, "home"), join(folder, "temporary")];
  for (const made of [home, temporary]) mkdirSync(made);
  const bin = fileURLToPath(new URL("bin/portico.js", root));
  const env = { PATH: process.env.PATH, HOME: home, TMPDIR: temporary };
  const child = spawnSync(process.execPath, [bin, "--version"], { encoding: "utf8", env });
  assert.equal(child.status, 0, child.stderr);
  assert.deepEqual(readdirSync(temporary), []);
  assert.ok(existsSync(join(home, ".cache", "portico")));
});

test(
  "the folder of compiled code is private whatever the umask is, and one that others may write is recreated",
  { skip: process.platform === "win32" && "there are no such modes" },
  (context) => {
    const home = makeFolder(context);
    const cache = join(home, ".cache/portico");
    const bin = fileURLToPath(new URL("bin/portico.js", root));
    const run = () => {
      const env = { PATH: process.env.PATH, HOME: home };
      const script = 'umask 0; exec "$0" "$1" --version';
      const child = spawnSync("/bin/sh", ["-c", script, process.execPath, bin], { encoding: "utf8", env });
      assert.deepEqual([child.status, child.stderr], [0, ""]);
    };
    run();
    assert.equal(statSync(cache).mode & 0o777, 0o700);
    assert.notDeepEqual(readdirSync(cache), []);
    for (const mode of [0o770, 0o777]) {
      writeFileSync(join(cache, "planted"), "");
      chmodSync(cache, mode);
      run();
      assert.equal(statSync(cache).mode & 0o777, 0o700);
      assert.notDeepEqual(readdirSync(cache), []);
      assert.ok(!existsSync(join(cache, "planted")));
    }
  },
);

test("the compiled code of the four installations that were used last is kept", (context) => {
  const home = makeFolder(context);
  const cache = join(home, ".cache/portico");
  const bin = fileURLToPath(new URL("bin/portico.js", root));
  const run = () => {
    const env = { PATH: process.env.PATH, HOME: home };
    const child = spawnSync(process.execPath, [bin, "--version"], { encoding: "utf8", env });
    assert.deepEqual([child.status, child.stderr], [0, ""]);
  };
  for (const year of [2001, 2002, 2003, 2004, 2005]) {
    const folder = join(cache, `used-in-${year}`);
    mkdirSync(folder, { recursive: true });
    utimesSync(folder, new Date(`${year}-01-01`), new Date(`${year}-01-01`));
  }
  chmodSync(cache, 0o700);
  run();
  const [own = "", ...others] = readdirSync(cache).toSorted();
  assert.deepEqual(others, ["used-in-2003", "used-in-2004", "used-in-2005"]);
  utimesSync(join(cache, own), new Date("2000-01-01"), new Date("2000-01-01"));
  run();
  assert.ok(statSync(join(cache, own)).mtime > new Date("2020-01-01"));
});

test("compiled code is used even where nobody can note when, such as in a home that is only readable", (context) => {
  const home = makeFolder(context);
  const readOnly = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    fs.utimesSync = () => { throw Object.assign(new Error("read-only"), { code: "EROFS" }); };
    syncBuiltinESMExports();`;
  const bin = fileURLToPath(new URL("bin/portico.js", root));
  const env = { PATH: process.env.PATH, HOME: home };
  const options = ["--import", `data:text/javascript,${encodeURIComponent(readOnly)}`, bin, "--version"];
  const child = spawnSync(process.execPath, options, { encoding: "utf8", env });
  assert.deepEqual([child.status, child.stderr], [0, ""]);
  const cache = join(home, ".cache/portico");
  const [own = ""] = readdirSync(cache);
  assert.equal(readdirSync(join(cache, own)).length, 1);
});

test("Portico runs where no compiled code can be cached", (context) => {
  const home = makeFolder(context);
  writeFileSync(join(home, ".cache"), "no folder");
  const bin = fileURLToPath(new URL("bin/portico.js", root));
  const env = { PATH: process.env.PATH, HOME: home };
  const child = spawnSync(process.execPath, [bin, "--version"], { encoding: "utf8", env });
  assert.deepEqual([child.status, child.stderr], [0, ""]);
});
