/** `portico doctor`: each possible problem, and what is printed about it. */
import assert from "node:assert/strict";
import dns from "node:dns";
import { once } from "node:events";
import fs, {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { syncBuiltinESMExports } from "node:module";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { judgePort } from "../../src/cli/doctor/port.ts";
import { knowsToken } from "../../src/cli/probe.ts";
import { loadConfig } from "../../src/config/load.ts";
import { createToken, storeToken } from "../../src/config/token.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { certificate, privateKey } from "../certificate.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { writeUnfinished } from "../stores/files.ts";
import { unknownHost } from "../upstream.ts";
import { keepThread, makeTurn, toCreate } from "../stores/making.ts";
import { surroundings } from "../config/surroundings.ts";
import { portico } from "./screen.ts";
import { giveAway, noStranger, runAsStranger, whileClosed } from "./stranger.ts";

/** The lines of `portico doctor` in a folder with these settings, by topic. */
async function examine(folder: string, gateway: object, ...args: readonly string[]) {
  const http = { port: 0, auth_token: token, endpoints: { compat_chat: true } };
  const settings = { gateway: { http, adapters: { echo: { type: "echo" } }, ...gateway } };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
  const { code, printed } = await portico(folder, "doctor", ...args);
  assert.ok(!printed.includes(token));
  return { code, printed, lineOf: (about: string) => printed.split("\n").find((line) => line.includes(` ${about}: `)) };
}

async function listen(context: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

test("Without problems, every line says so, and nothing is created.", async (context) => {
  const folder = makeFolder(context);
  const { code, printed } = await examine(folder, {});
  assert.equal(code, 0);
  const lines = printed.split("\n");
  assert.deepEqual(
    lines.filter((line) => !line.startsWith("ok       ")),
    [],
  );
  for (const about of ["node", "configuration", "data folder", "store", "port", "default adapter", "adapter echo"])
    assert.ok(lines.some((line) => line.startsWith(`ok       ${about}: `)));
  assert.deepEqual(readdirSync(folder), ["portico.json"]);
});

test("Problems of the configuration are listed one by one, and risky settings as warnings.", async (context) => {
  const folder = makeFolder(context);
  const wrong = await examine(folder, { http: { prot: 1, bind: "nowhere", auth_token: token } });
  assert.equal(wrong.code, 1);
  assert.match(wrong.printed, /^problem {2}gateway\.http\.prot: unknown key; did you mean 'port'\?/m);
  assert.match(wrong.printed, /^problem {2}gateway\.http\.bind: /m);
  const bold = await examine(folder, {
    http: { bind: "0.0.0.0", port: 0, auth_token: "short", endpoints: { compat_chat: true } },
  });
  assert.equal(bold.code, 0);
  assert.match(bold.printed, /^warning {2}gateway\.http\.bind: 0\.0\.0\.0 can be reached/m);
  assert.match(bold.printed, /^warning {2}gateway\.http\.auth_token: shorter than 16/m);
});

test("A data folder that cannot be used is a problem.", async (context) => {
  const folder = makeFolder(context);
  writeFileSync(join(folder, "file"), "");
  for (const dataDir of ["file", "file/below"]) {
    const { code, lineOf } = await examine(folder, { data_dir: dataDir });
    assert.equal(code, 1);
    assert.match(lineOf("data folder")!, /^problem .*file.*(is not a folder|cannot be written).*gateway\.data_dir/);
  }
});

test(
  "A generated token that others may read is a warning with its remedy.",
  { skip: process.platform === "win32" && "Windows has no such file modes" },
  async (context) => {
    const folder = makeFolder(context);
    const file = join(folder, ".portico/token");
    const made = createToken();
    storeToken(join(folder, ".portico"), made);
    const well = await portico(folder, "doctor", "--offline");
    assert.match(well.printed, /^ok {7}token: .*readable only by its owner$/m);
    chmodSync(file, 0o644);
    const { printed } = await portico(folder, "doctor", "--offline");
    assert.match(printed, /^warning {2}token: .* \(mode 644\); chmod 600 .*token, then `portico token rotate`$/m);
    assert.ok(!printed.includes(made));
    writeFileSync(file, "");
    const empty = await portico(folder, "doctor", "--offline");
    assert.equal(empty.code, 1);
    assert.match(empty.printed, /^problem {2}token: .*token: the generated token is empty; delete this file/m);
  },
);

test("A disk that is nearly full is a warning, and one that turns soon cannot be stored on is a problem.", async (context) => {
  const folder = makeFolder(context);
  const space = { type: 0, bsize: 1_000, blocks: 9_000_000, bfree: 9_000_000, bavail: 0, files: 1, ffree: 1 };
  const statfs = context.mock.method(fs, "statfsSync", () => space);
  syncBuiltinESMExports();
  try {
    for (const [bavail, line] of [
      [1_000_000, /^ok .*, 1 GB free$/],
      [999_999, /^warning .* free; make room, or shorten gateway\.sessions\.ttl$/],
      [50_000, /^warning .*, 50 MB free; make room/],
      [49_999, /^problem .* free; turns cannot be stored much longer: make room$/],
    ] as const) {
      space.bavail = bavail;
      assert.match((await examine(folder, {}, "--offline")).lineOf("data folder")!, line);
    }
  } finally {
    statfs.mock.restore();
    syncBuiltinESMExports();
  }
});

test("A store is read while a gateway has it open, and is not changed.", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, ".portico/portico.db");
  const store = createSqliteStore({ file });
  context.after(() => store.close());
  await store.claim();
  await keepThread(store, 3);
  const before = readFileSync(file);
  const { code, lineOf } = await examine(folder, {});
  assert.equal(code, 0);
  assert.match(lineOf("store")!, /^ok .*portico\.db, [\d.]+ KB, schema version \d+, intact$/);
  assert.ok(before.equals(readFileSync(file)));
  const turn = makeTurn({ session: "conv_bob" });
  assert.equal(await store.commit({ turns: [turn], session: toCreate(turn, "bobs") }), true);
});

test("Stored data does not change when no gateway runs: files that SQLite leaves next to it are empty.", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, ".portico/portico.db");
  const store = createSqliteStore({ file });
  const [first] = await keepThread(store, 3);
  await store.close();
  const before = readFileSync(file);
  assert.equal((await examine(folder, {})).code, 0);
  assert.ok(before.equals(readFileSync(file)));
  assert.equal(statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0, 0);
  const after = createSqliteStore({ file });
  context.after(() => after.close());
  assert.equal((await after.findSession("alice", "hint"))?.id, first!.session);
  assert.match((await portico(folder, "doctor", "--help")).printed, /^Changes no stored data/m);
});

test(
  "A store that other users may read, like a backup put in its place, is a warning.",
  { skip: process.platform === "win32" && "Windows has no such file modes" },
  async (context) => {
    const folder = makeFolder(context);
    const file = join(folder, ".portico/portico.db");
    await createSqliteStore({ file }).close();
    chmodSync(file, 0o644);
    const { code, lineOf } = await examine(folder, {}, "--offline");
    assert.equal(code, 0);
    assert.match(
      lineOf("store")!,
      /^warning .*, intact, but open to other users \(mode 644\); chmod 600 .*portico\.db\*$/,
    );
    chmodSync(file, 0o600);
    writeFileSync(`${file}-wal`, "not empty");
    chmodSync(`${file}-wal`, 0o640);
    assert.match((await examine(folder, {}, "--offline")).lineOf("store")!, /^warning .* \(mode 640\)/);
  },
);

test("A damaged, newer or foreign store, or another file, is a problem with a remedy.", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, ".portico/portico.db");
  const judge = async () => {
    const { code, lineOf } = await examine(folder, {});
    assert.equal(code, 1);
    return lineOf("store")!;
  };
  const store = createSqliteStore({ file });
  await keepThread(store, 200);
  await store.close();
  const whole = readFileSync(file);

  const damaged = Buffer.from(whole);
  damaged.fill(0xff, Math.floor(damaged.length / 2));
  writeFileSync(file, damaged);
  assert.match(await judge(), /^problem .*portico\.db is damaged: .*; /);
  writeFileSync(file, whole.subarray(0, Math.floor(whole.length / 2)));
  assert.match(await judge(), /^problem .*portico\.db is damaged: .*malformed; restore a backup, or move it away: /);

  writeFileSync(file, whole);
  const database = new DatabaseSync(file);
  database.exec("PRAGMA user_version = 999");
  assert.match(await judge(), /schema version 999, .*; start the newer release that wrote it$/);
  database.exec("PRAGMA application_id = 1");
  database.close();
  assert.match(await judge(), /is another program's database; name another/);

  writeFileSync(file, "no database, but long enough to be taken for one".repeat(100));
  assert.match(await judge(), /cannot be read: .*not a database; /);
  writeUnfinished(file);
  assert.match(await judge(), /has the journal of an unfinished change beside it; name another/);
});

test("An unfinished store of a first start without disk space is created at the next start.", async (context) => {
  const folder = makeFolder(context);
  const file = join(folder, ".portico/portico.db");
  mkdirSync(join(folder, ".portico"));
  const database = new DatabaseSync(file);
  database.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL");
  database.close();
  assert.ok(statSync(file).size > 0);
  const { code, lineOf } = await examine(folder, {});
  assert.equal(code, 0);
  assert.equal(lineOf("store"), `ok       store: ${file} is created at the first start`);
  await createSqliteStore({ file }).close();
});

test(
  "A store that may be read but not written is a problem, as it is for a start.",
  { skip: noStranger },
  async (context) => {
    const folder = makeFolder(context);
    const data = join(folder, ".portico");
    const file = join(data, "portico.db");
    const store = createSqliteStore({ file });
    await keepThread(store, 1);
    await store.claim();
    await store.close();
    await examine(folder, {});
    for (const name of ["", "portico.json", ...readdirSync(data).map((name) => join(".portico", name)), ".portico"])
      giveAway(join(folder, name));
    const judge = async () => (await runAsStranger(folder, "doctor")).stdout;
    assert.match(await judge(), /^ok {7}store: /m);
    for (const closed of [file, `${file}-gateway`]) {
      chmodSync(closed, 0o400);
      const remedy = "give the gateway's user read and write access, and run this as that user";
      assert.ok(
        (await judge()).includes(
          `problem  store: ${closed} cannot be read and written by this user (EACCES); ${remedy}\n`,
        ),
      );
      const { code, stderr } = await runAsStranger(folder, "start");
      assert.equal(code, 1);
      assert.match(
        stderr,
        /^Portico could not start: The session store .*\.db(?:-gateway)? cannot be opened: .*may read and write it/,
      );
      chmodSync(closed, 0o600);
    }
    chmodSync(data, 0o500);
    const lines = await judge();
    chmodSync(data, 0o700);
    assert.match(lines, /^problem {2}store: .*\.portico cannot be read and written by this user/m);
  },
);

test("A port may be free, or used by this configuration's gateway, ready or not, or by another program.", async (context) => {
  const folder = makeFolder(context);
  const home = makeFolder(context);
  const gateway = await startGateway(context, {}, home);
  const stranger = createHttpServer((_request, response) => response.end('{"status":"ok"}'));
  const sessions = { store: `sqlite:${join(home, ".portico/portico.db")}` };
  const at = (port: number) => ({ sessions, http: { port, auth_token: token, endpoints: { compat_chat: true } } });
  const ours = await examine(folder, at(Number(new URL(gateway.address).port)));
  assert.equal(ours.code, 0);
  assert.match(ours.lineOf("port")!, new RegExp(`^ok .* a gateway answers at ${gateway.address}$`));
  const inTrouble = join(home, ".portico/portico.db");
  renameSync(inTrouble, `${inTrouble}.moved`);
  const unready = await examine(folder, at(Number(new URL(gateway.address).port)));
  assert.equal(unready.code, 1);
  assert.match(
    unready.lineOf("port")!,
    /^problem .*is not ready: The session store cannot save turns now: .*Put it back/,
  );
  renameSync(`${inTrouble}.moved`, inTrouble);
  const port = await listen(context, stranger);
  const theirs = await examine(folder, at(port));
  assert.equal(theirs.code, 1);
  assert.match(
    theirs.lineOf("port")!,
    new RegExp(`^problem .*port ${port} of 127\\.0\\.0\\.1 is in use by another program`),
  );
  stranger.close();
  stranger.closeAllConnections();
  const free = await examine(folder, { http: at(port).http });
  assert.match(free.lineOf("port")!, /^ok .* is free$/);
  const elsewhere = await examine(folder, at(port));
  assert.equal(
    elsewhere.lineOf("port"),
    `warning  port: port ${port} of 127.0.0.1 is free, but the store is in use; ` +
      "if by a gateway that was started with --bind or --port, repeat them here",
  );
  const there = await portico(folder, "doctor", "--offline", "--port", new URL(gateway.address).port);
  assert.match(there.printed, new RegExp(`^ok {7}port: a gateway answers at ${gateway.address}$`, "m"));
  const nowhere = await examine(folder, { http: { ...at(port).http, bind: "192.0.2.1" } });
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.lineOf("port")!, /^problem .*this machine has no address 192\.0\.2\.1; choose one of its own/);
});

test("A gateway that does not know a token of this configuration is a problem that names the token.", async (context) => {
  const general = `${token}-general`;
  const endpoints = { compat_chat: true };
  const home = makeFolder(context);
  const { address } = await startGateway(
    context,
    { auth: { token: general }, http: { port: 0, auth_token: token, endpoints }, sessions: { store: "memory:" } },
    home,
  );
  const port = Number(new URL(address).port);
  const folder = makeFolder(context);
  const sessions = { store: "memory:" };
  const judge = (ownToken: string, generalToken: string) =>
    examine(folder, { sessions, http: { port, auth_token: ownToken, endpoints }, auth: { token: generalToken } });
  const well = await judge(token, general);
  assert.equal(well.code, 0);
  assert.match(well.lineOf("port")!, /^ok .* a gateway answers at/);
  const changed = `${token}-changed`;
  for (const [ownToken, generalToken, key] of [
    [changed, general, "gateway.http.auth_token"],
    [token, changed, "gateway.auth.token"],
  ] as const) {
    const { code, printed, lineOf } = await judge(ownToken, generalToken);
    assert.equal(code, 1);
    assert.equal(
      lineOf("port"),
      `problem  port: the gateway at ${address} does not know ${key}, so it runs with other settings; ` +
        "if it is yours, restart it or send it a SIGHUP; else choose another port",
    );
    assert.ok(!printed.includes(general) && !printed.includes(changed));
  }
  // After too many wrong tokens the gateway answers with 429 instead of 401.
  for (let count = 0; count < 10; count += 1) await knowsToken(address, changed);
  assert.match((await judge(changed, general)).lineOf("port")!, /^problem .* does not know gateway\.http\.auth_token/);
});

test("A server that has the port but not the store is sent no token, even if it looks like a gateway.", async (context) => {
  const folder = makeFolder(context);
  const shown: (string | undefined)[] = [];
  const squatter = createHttpServer(({ headers }, response) => {
    shown.push(headers.authorization);
    response.setHeader("x-request-id", "req_1").end('{"status":"ok"}');
  });
  const port = await listen(context, squatter);
  const http = { port, auth_token: token, endpoints: { compat_chat: true } };
  const judge = async (gateway = {}) => (await examine(folder, { http, ...gateway })).lineOf("port");
  const remedy = "if it is yours, it uses another store; else stop it, or choose another port";
  const expected = `problem  port: whoever answers at http://127.0.0.1:${port} does not have this store open, so it was sent no token; ${remedy}`;
  assert.equal(await judge(), expected);
  // A gateway that has stopped leaves its lock file behind, unlocked.
  const store = createSqliteStore({ file: join(folder, ".portico/portico.db") });
  await store.claim();
  await store.close();
  assert.equal(await judge(), expected);
  assert.deepEqual(
    shown.filter((header) => header !== undefined),
    [],
  );
  assert.match((await judge({ sessions: { store: "memory:" } }))!, /^ok .*a gateway answers at/);
});

test(
  "If the user may not read the store's lock, the server at the port is sent no token, which is a warning.",
  { skip: process.platform === "win32" && "Windows has no such file modes" },
  async (context) => {
    const folder = makeFolder(context);
    const gateway = await startGateway(context, {}, folder);
    const { config } = await loadConfig({ folder, generatedToken: token }, surroundings());
    const http = { ...config.http, port: Number(new URL(gateway.address).port) };
    chmodSync(folder, 0o755);
    assert.equal((await judgePort({ ...config, http })).level, "ok");
    assert.deepEqual(await whileClosed(join(folder, ".portico"), () => judgePort({ ...config, http })), {
      level: "warning",
      text:
        `whoever answers at ${gateway.address} was sent no token: ` +
        "this user may not read the store's lock; to learn more, run this as the gateway's user",
    });
  },
);

test("A gateway that was started in another folder without a file does not know this folder's token.", async (context) => {
  const folder = makeFolder(context);
  storeToken(join(folder, ".portico"), createToken());
  const { address } = await startGateway(context, { sessions: { store: "memory:" } });
  const { config } = await loadConfig({ folder, generatedToken: token }, surroundings());
  const http = { ...config.http, port: Number(new URL(address).port) };
  assert.match((await judgePort({ ...config, http })).text, /does not have this store open/);
  const store = createSqliteStore({ file: join(folder, ".portico/portico.db") });
  context.after(() => store.close());
  await store.claim();
  const { level, text } = await judgePort({ ...config, http });
  assert.equal(level, "problem");
  assert.ok(
    text.startsWith(`the gateway at ${address} does not know the token in ${join(folder, ".portico/token")}, `),
  );
  writeFileSync(join(folder, ".portico/token"), "");
  assert.equal((await judgePort({ ...config, http })).text, `a gateway answers at ${address}`);
});

const noSecond = process.platform === "darwin" && "macOS has no 127.0.0.2";

test(
  "A port that another program has at one address of localhost is a problem.",
  { skip: noSecond },
  async (context) => {
    const known = ["127.0.0.1", "127.0.0.3", "127.0.0.2", "192.0.2.1"];
    context.mock.method(dns.promises, "lookup", async () => known.map((address) => ({ address, family: 4 })));
    const folder = makeFolder(context);
    const stranger = createServer().listen(0, "127.0.0.2");
    context.after(() => stranger.close());
    await once(stranger, "listening");
    const { port } = stranger.address() as AddressInfo;
    const http = { bind: "localhost", port, auth_token: token, endpoints: { compat_chat: true } };
    assert.match(
      (await examine(folder, { http })).lineOf("port")!,
      /^problem .* of localhost is in use by another program/,
    );
    stranger.close();
    assert.match((await examine(folder, { http })).lineOf("port")!, /^ok .* of localhost is free$/);
  },
);

test("A machine that cannot resolve localhost has a problem with its port, not with doctor.", async (context) => {
  const unknown = Object.assign(new Error("getaddrinfo ENOTFOUND localhost"), { code: "ENOTFOUND" });
  context.mock.method(dns.promises, "lookup", () => Promise.reject(unknown));
  context.mock.method(dns, "lookup", (_name: string, _options: object, done: (error: Error) => void) => done(unknown));
  const http = { bind: "localhost", auth_token: token, endpoints: { compat_chat: true } };
  assert.match((await examine(makeFolder(context), { http })).lineOf("port")!, /^problem .*ENOTFOUND localhost/);
});

test("A unix socket may be free, or used by a gateway, or its path may be something else.", async (context) => {
  const folder = makeFolder(context);
  const at = (path: string) => ({
    http: { bind: `unix:${path}`, auth_token: token, endpoints: { compat_chat: true } },
    sessions: { store: "memory:" },
  });
  assert.match((await examine(folder, at("door.sock"))).lineOf("port")!, /^ok .*door\.sock is free$/);
  const gateway = await startGateway(context, at("door.sock"), folder);
  assert.match(
    (await examine(folder, at("door.sock"))).lineOf("port")!,
    /^ok .*a gateway answers at unix:.*door\.sock$/,
  );
  // As a gateway that was killed leaves it.
  linkSync(join(folder, "door.sock"), join(folder, "left.sock"));
  await gateway.close();
  assert.match((await examine(folder, at("left.sock"))).lineOf("port")!, /^ok .*left\.sock is free$/);
  assert.match((await examine(folder, at("gone/door.sock"))).lineOf("port")!, /^problem .*gone does not exist; create/);
  mkdirSync(join(folder, "folder"));
  assert.match(
    (await examine(folder, at("folder"))).lineOf("port")!,
    /^problem .*folder is not a socket; choose another/,
  );
  assert.ok(statSync(join(folder, "folder")).isDirectory());
});

test("With both endpoints disabled there is no port to check.", async (context) => {
  const { code, lineOf } = await examine(makeFolder(context), { http: { auth_token: token } });
  assert.equal(code, 0);
  assert.match(lineOf("port")!, /^warning .*no endpoint is on.*gateway\.http\.endpoints/);
});

test("Each adapter is created and its server asked: one that is unreachable or refuses the key is a problem.", async (context) => {
  const upstream = await startGateway(context, {});
  const bare = createHttpServer(({ url }, response) => response.writeHead(url === "/busy/v1/models" ? 429 : 404).end());
  const port = await listen(context, bare);
  const to = (address: string, key: string) => ({ type: "openai", base_url: `${address}/v1`, api_key: key });
  const adapters = {
    well: to(upstream.address, token),
    locked: to(upstream.address, "sk-wrong-0123456789abcdef"),
    bare: to(`http://127.0.0.1:${port}`, token),
    busy: to(`http://127.0.0.1:${port}/busy`, token),
    down: to("http://127.0.0.1:1", token),
    nameless: to(`http://${unknownHost}`, token),
    agent: { type: "command", argv: ["/no/such/program"] },
    typed: { type: "command", argv: ["portico-no-such-program"] },
  };
  const folder = makeFolder(context);
  const { code, printed, lineOf } = await examine(folder, { adapters, default_adapter: "well" });
  assert.equal(code, 1);
  assert.match(lineOf("adapter well")!, /^ok .*type openai, answers, models: 1$/);
  assert.match(lineOf("adapter locked")!, /^problem .*refused the gateway's credentials \(status 401\)/);
  assert.match(
    lineOf("adapter bare")!,
    /^warning .*has no list of models; if turns fail too, check its address, .* \/v1/,
  );
  assert.match(lineOf("adapter busy")!, /^warning .*accepts nothing now; wait, or name a fallback \(.*429/);
  assert.match(
    lineOf("adapter down")!,
    /^problem .*127\.0\.0\.1:1 refuses connections \(ECONNREFUSED\)\. Check .* https:/,
  );
  assert.match(lineOf("adapter nameless")!, /^problem .*x{64}\.invalid/);
  assert.match(lineOf("adapter agent")!, /^problem .*\/no\/such\/program/);
  assert.match(
    lineOf("adapter typed")!,
    /^problem .*no executable program portico-no-such-program .*Install it, or give its path/,
  );
  assert.ok(!printed.includes("sk-wrong"));
  const offline = await examine(folder, { adapters: { down: adapters.down } }, "--offline");
  assert.equal(offline.code, 0);
  assert.match(offline.lineOf("adapter down")!, /^ok .*type openai, ready$/);
});

test("A TLS mismatch is reported with what to change, not as a network problem.", async (context) => {
  const plain = await listen(
    context,
    createHttpServer((_request, response) => response.end()),
  );
  const sealed = createHttpsServer({ cert: certificate, key: privateKey }, (_request, response) => response.end());
  const port = await listen(context, sealed);
  const adapters = {
    plain: { type: "openai", base_url: `https://127.0.0.1:${plain}/v1` },
    own: { type: "openai", base_url: `https://localhost:${port}/v1` },
  };
  const { code, lineOf } = await examine(makeFolder(context), { adapters, default_adapter: "own" });
  assert.equal(code, 1);
  assert.match(
    lineOf("adapter plain")!,
    /^problem .*TLS with the upstream at .* failed .* write http:\/\/ in its URL\.$/,
  );
  assert.match(
    lineOf("adapter own")!,
    /^problem .*TLS with the upstream at .* failed .* variable NODE_EXTRA_CA_CERTS to a file with its certificate authority\.$/,
  );
});

test("A server's text can neither control the terminal nor imitate a line of doctor.", async (context) => {
  const message = "\u001b]0;mine\u0007\u001b[2J\nok       port: all is well\u009b31m";
  const upstream = createHttpServer((_request, response) => {
    response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error: { message } }));
  });
  const port = await listen(context, upstream);
  const adapters = { main: { type: "openai", base_url: `http://127.0.0.1:${port}/v1` } };
  const { printed, lineOf } = await examine(makeFolder(context), { adapters });
  assert.doesNotMatch(printed, /[\0-\x09\x0b-\x1f\x7f-\x9f]/);
  assert.ok(lineOf("adapter main")!.includes("\\x1b]0;mine\\x07\\x1b[2J ok port: all is well\\x9b31m"));
  assert.equal(printed.split("\n").filter((line) => line.startsWith("ok       port: ")).length, 1);
});

test("What cannot be checked at all is a problem like any other.", async (context) => {
  const folder = makeFolder(context);
  symlinkSync(".portico", join(folder, ".portico"));
  writeFileSync(
    join(folder, "adapter.cjs"),
    "module.exports = { async *stream() {}, close() { throw new Error('stuck'); } };",
  );
  const { code, lineOf } = await examine(folder, {
    http: { bind: "unix:portico.json/socket", auth_token: token, endpoints: { compat_chat: true } },
    adapters: { mine: { type: "module", path: "adapter.cjs" } },
  });
  assert.equal(code, 1);
  assert.match(lineOf("data folder") ?? "", /^problem .*ELOOP/);
  assert.match(lineOf("store") ?? "", /^problem .*ELOOP/);
  assert.match(lineOf("port") ?? "", /^problem .*\(ENOTDIR\); choose another path/);
  assert.match(lineOf("adapter mine") ?? "", /^problem .*cannot be closed: stuck/);
});

test("A silent server is not waited for: doctor ends within five seconds.", async (context) => {
  const folder = makeFolder(context);
  const silent = createServer((socket) => void context.after(() => socket.destroy()));
  const port = await listen(context, silent);
  const begun = Date.now();
  const adapters = { silent: { type: "openai", base_url: `http://127.0.0.1:${port}/v1` } };
  const http = { port, auth_token: token, endpoints: { compat_chat: true } };
  const { code, lineOf } = await examine(folder, { http, adapters });
  assert.equal(code, 1);
  assert.match(lineOf("port")!, /^problem .*in use by another program/);
  assert.match(lineOf("adapter silent")!, /^problem .*no answer within 3 s; check its address and the network$/);
  assert.ok(Date.now() - begun < 5_000);
  assert.ok(!existsSync(join(folder, ".portico")));
});
