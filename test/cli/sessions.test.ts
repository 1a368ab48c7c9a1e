/** `portico sessions …`, on a store of its own and next to a running gateway's connection. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs, { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import type { Runtime } from "../../src/cli/runtime.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../gateway.ts";
import { type Ended, runIn } from "./screen.ts";
import { keepBelow, keepThread, makeTurn, toCreate } from "../stores/making.ts";
import { bareEnvironment, executable } from "../whole/program.ts";

const runtime: Runtime = {
  tryAdapters: () => assert.fail("no adapter may be created"),
  open: () => assert.fail("no gateway may be started"),
};

/** Runs `portico sessions ARGS` in a folder, within this process. */
function sessions(folder: string, ...args: readonly string[]): Promise<Ended> {
  return runIn(folder, ["sessions", ...args], { runtime });
}

function makePlace(context: TestContext, more: object = {}): { readonly folder: string; readonly file: string } {
  const folder = makeFolder(context);
  const settings = { gateway: { http: { auth_token: "sk-test-0123456789abcdef" }, sessions: more } };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
  return { folder, file: join(folder, ".portico/portico.db") };
}

/** Opens the store as a gateway has it open. */
function openBeside(context: TestContext, file: string, now?: () => Date): SessionStore {
  const store = createSqliteStore({ file, now });
  context.after(() => store.close());
  return store;
}

test("sessions are listed as a table, newest activity first, or as JSON", async (context) => {
  const { folder, file } = makePlace(context);
  let at = Date.parse("2026-01-01T00:00:00Z");
  const store = openBeside(context, file, () => new Date(at));
  const [first] = await keepThread(store, 2);
  at += 3_600_000;
  const turn = makeTurn({ owner: "bob", session: "conv_bob" });
  await store.commit({ turns: [turn], session: toCreate(turn, "bobs") });
  const { code, printed } = await sessions(folder, "list");
  assert.equal(code, 0);
  const width = first!.session!.length;
  assert.deepEqual(printed.split("\n"), [
    `${"ID".padEnd(width)}  OWNER  TURNS  CREATED               LAST ACTIVITY         FIRST WORDS`,
    `${"conv_bob".padEnd(width)}  bob    1      2026-01-01 01:00:00Z  2026-01-01 01:00:00Z  Why is the sky blue?`,
    `${first!.session}  alice  2      2026-01-01 00:00:00Z  2026-01-01 00:00:00Z  Why is the sky blue?`,
  ]);
  const json = await sessions(folder, "list", "--json", "--owner", "bob");
  assert.deepEqual(JSON.parse(json.printed), [
    {
      id: "conv_bob",
      owner: "bob",
      createdAt: "2026-01-01T01:00:00.000Z",
      updatedAt: "2026-01-01T01:00:00.000Z",
      turns: 1,
      beginning: "Why is the sky blue?",
    },
  ]);
  const page = await sessions(folder, "list", "--limit", "1");
  assert.equal(page.complained, "There are more: add --after conv_bob");
  assert.match((await sessions(folder, "list", "--limit", "1", "--after", "conv_bob")).printed, /alice/);
});

test("a session is printed readably with its branches, and can neither control the terminal nor add lines of ours", async (context) => {
  const { folder, file } = makePlace(context);
  const store = openBeside(context, file);
  const [first, second] = await keepThread(store, 2);
  const branch = await keepBelow(store, first!, {
    model: "a-model)\n\n-- resp_1 (another",
    input: [{ type: "message", role: "user", content: "Why\u001b[2J red?\nAt dusk." }],
    output: [
      { type: "tool-call", kind: "function", callId: "c", name: "look_up", arguments: '{"q":1}' },
      { type: "message", role: "assistant", content: [{ type: "refusal", text: "No." }] },
    ],
  });
  await store.updateMetadata("alice", first!.session!, { topic: "sky\n\n== A thread" });
  const { code, printed } = await sessions(folder, "show", first!.session!);
  assert.equal(code, 0);
  const [title, about, ...lines] = printed.split("\n");
  assert.equal(title, `Session ${first!.session} of alice`);
  assert.match(about ?? "", /, 3 turns, 2 threads$/);
  assert.deepEqual(lines, [
    "topic: sky == A thread",
    "",
    `-- ${first!.id} (2026-02-03 04:05:06Z, a-model, 2 branches follow)`,
    "  user: Why is the sky blue?",
    "  assistant: Short waves scatter more.",
    "",
    `-- ${second!.id} (2026-02-03 04:05:06Z, a-model, the session continues from here)`,
    "  user: Why is the sky blue?",
    "  assistant: Short waves scatter more.",
    "",
    `== A branch, from ${first!.id}`,
    "",
    `-- ${branch.id} (2026-02-03 04:05:06Z, a-model) -- resp_1 (another)`,
    "  user: Why\\x1b[2J red?",
    "    At dusk.",
    '  tool call: look_up {"q":1}',
    "  assistant: [refusal] No.",
  ]);
  const json = JSON.parse((await sessions(folder, "show", first!.session!, "--json")).printed);
  assert.equal(json.turns.length, 3);
  assert.equal(json.hint, undefined);
  const unknown = await sessions(folder, "show", "conv_gone");
  assert.equal(unknown.code, 1);
  assert.match(unknown.complained, /conv_gone/);
});

test("every kind of item is printed in words", async (context) => {
  const { folder, file } = makePlace(context);
  const store = openBeside(context, file);
  const extra = { dialect: "responses", fields: { type: "web_search_call" } } as const;
  const turn = makeTurn({
    session: "conv_kinds",
    status: "incomplete",
    input: [
      {
        type: "message",
        role: "user",
        content: [
          { type: "text", text: "Look:\r" },
          { type: "image", url: "https://images.example/cat.png" },
          { type: "image", url: "data:image/png;base64,AAAA" },
          { type: "image", fileId: "file_1" },
          { type: "file", name: "notes.pdf" },
          { type: "file", fileId: "file_2" },
          { type: "audio", data: "AAAA", format: "wav" },
          { type: "other", extra },
        ],
      },
      { type: "tool-output", kind: "function", callId: "c", output: "42" },
      { type: "compaction", summary: "", encrypted: "opaque" },
      { type: "compaction", summary: "Earlier, cats." },
    ],
    output: [
      { type: "reasoning", summary: ["First."], text: "Then." },
      { type: "reasoning", summary: [], text: "", encrypted: "opaque" },
      { type: "other", extra },
    ],
  });
  await store.commit({ turns: [turn], session: toCreate(turn, "kinds") });
  const { printed } = await sessions(folder, "show", "conv_kinds");
  assert.deepEqual(printed.split("\n").slice(3), [
    `-- ${turn.id} (2026-02-03 04:05:06Z, a-model, incomplete, the session continues from here)`,
    "  user: Look:",
    "    [image https://images.example/cat.png]",
    "    [image]",
    "    [image]",
    "    [file notes.pdf]",
    "    [file]",
    "    [audio]",
    "    [other]",
    "  tool output: 42",
    "  compaction: [sealed]",
    "  compaction: Earlier, cats.",
    "  reasoning: First.",
    "    Then.",
    "  reasoning: [sealed]",
    '  other: {"type":"web_search_call"}',
  ]);
});

test("an archive that is exported on one machine and imported on another is the same there", async (context) => {
  const here = makePlace(context);
  const [first] = await keepThread(openBeside(context, here.file), 3);
  const out = await sessions(here.folder, "export", "--out", "backup.jsonl");
  assert.equal(out.code, 0);
  const archive = join(here.folder, "backup.jsonl");
  assert.equal(statSync(archive).mode & 0o777, 0o600);
  const exportTo = async (file: string) => (await sessions(here.folder, "export", "--out", file)).complained;
  assert.equal(await exportTo("backup.jsonl"), `${archive} exists and was left as it is; name another file.`);
  assert.match(
    await exportTo("gone/backup.jsonl"),
    /cannot be written \(ENOENT\): its folder does not exist; create it\.$/,
  );

  const there = makePlace(context);
  const taken = await sessions(there.folder, "import", archive);
  assert.equal(taken.printed, "Imported 1 session and 3 turns.");
  const again = await sessions(there.folder, "import", archive);
  assert.equal(again.printed, "Imported 0 sessions and 0 turns.");
  assert.equal((await openBeside(context, there.file).findSession("alice", "hint"))?.id, first!.session);

  const cut = readFileSync(archive, "utf8").split("\n").slice(0, 3).join("\n");
  writeFileSync(archive, cut);
  const empty = makePlace(context);
  const refused = await sessions(empty.folder, "import", archive);
  assert.equal(refused.code, 1);
  assert.match(refused.complained, /cut off/);
  assert.equal((await sessions(empty.folder, "list")).complained, "There are no sessions.");
});

test("an archive that cannot be read or written is a failure that says why", async (context) => {
  const { folder, file } = makePlace(context);
  const server = createServer().listen(join(folder, "socket"));
  await once(server, "listening");
  context.after(() => server.close());
  const long = "x".repeat(300);
  for (const [name, code] of [
    ["gone.jsonl", "ENOENT"],
    [".", "EISDIR"],
    [long, "ENAMETOOLONG"],
  ] as const) {
    const { code: exit, complained } = await sessions(folder, "import", name);
    assert.equal(exit, 1);
    assert.match(complained, new RegExp(`cannot be read \\(${code}\\)`));
    assert.ok(!existsSync(file), "no store is made for it");
  }
  assert.match((await sessions(folder, "import", "socket")).complained, /socket cannot be read \(E/);
  await keepThread(openBeside(context, file), 1);
  assert.match((await sessions(folder, "export", "--out", long)).complained, /cannot be written \(ENAMETOOLONG\)/);
});

test("an archive for which there is no room is not left behind in part", async (context) => {
  const { folder, file } = makePlace(context);
  await keepThread(openBeside(context, file), 3);
  const archive = join(folder, "backup.jsonl");
  // Takes a little of what is written, like a disk that is full then.
  const fill = (descriptor: number, ...rest: readonly unknown[]) => {
    fs.writeSync(descriptor, "{");
    const done = rest.at(-1) as (failure: Error) => void;
    done(Object.assign(new Error("no space left on device"), { code: "ENOSPC", syscall: "write" }));
  };
  context.mock.method(fs, "write", fill);
  context.mock.method(fs, "writev", fill);
  const { code, complained } = await sessions(folder, "export", "--out", "backup.jsonl");
  const why = `${archive} cannot be written (ENOSPC): its disk is full; make room there.`;
  assert.deepEqual([code, complained, existsSync(archive)], [1, why, false]);
});

test("a store that this user cannot look at is not taken for an absent one", async (context) => {
  const folder = makeFolder(context);
  symlinkSync("loop", join(folder, "loop"));
  const sessionsKeys = { store: "sqlite:loop/portico.db" };
  const settings = { gateway: { http: { auth_token: "sk-test-0123456789abcdef" }, sessions: sessionsKeys } };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
  for (const command of ["list", "prune", "export"]) {
    const { code, complained } = await sessions(folder, command);
    assert.equal(code, 1);
    assert.match(complained, /loop\/portico\.db cannot be read \(ELOOP\)/);
  }
});

test("an archive can be piped from one command into the next", async (context) => {
  const here = makePlace(context);
  await keepThread(openBeside(context, here.file), 2);
  const there = makePlace(context);
  const start = (cwd: string, ...args: readonly string[]) =>
    spawn(process.execPath, [executable, "sessions", ...args], { cwd, env: bareEnvironment(cwd) });
  const exporting = start(here.folder, "export");
  const importing = start(there.folder, "import", "-");
  exporting.stdout.pipe(importing.stdin);
  const [said, wrong, alsoWrong] = await Promise.all([
    text(importing.stdout),
    text(importing.stderr),
    text(exporting.stderr),
  ]);
  assert.equal(wrong + alsoWrong, "");
  assert.equal(said, "Imported 1 session and 2 turns.\n");
});

test("an archive may come from a named pipe", { skip: process.platform === "win32" }, async (context) => {
  const here = makePlace(context);
  await keepThread(openBeside(context, here.file), 2);
  await sessions(here.folder, "export", "--out", "backup.jsonl");
  const there = makePlace(context);
  const pipe = join(there.folder, "pipe");
  execFileSync("sh", ["-c", 'mkfifo "$0"', pipe]);
  const writing = spawn("sh", ["-c", 'cat "$0" > "$1"', join(here.folder, "backup.jsonl"), pipe]);
  context.after(() => writing.kill());
  assert.equal((await sessions(there.folder, "import", pipe)).printed, "Imported 1 session and 2 turns.");
});

test("deleted sessions are gone for a gateway that runs at the same time, and unknown ones are reported", async (context) => {
  const { folder, file } = makePlace(context);
  const store = openBeside(context, file);
  const [first] = await keepThread(store, 2);
  assert.equal((await store.readPath(first!.id)).length, 1);
  const { code, printed, complained } = await sessions(folder, "delete", first!.session!, "conv_gone");
  assert.equal(code, 1);
  assert.equal(printed, `Deleted ${first!.session}.`);
  assert.equal(complained, "There is no session 'conv_gone', and no turn with that id outside of sessions.");
  assert.equal(await store.findSession("alice", "hint"), undefined);
  assert.equal(await store.findTurn("alice", first!.id), undefined);
});

test("prune applies the configured retention and prints what was deleted", async (context) => {
  const { folder, file } = makePlace(context, { ttl: "1h" });
  const store = createSqliteStore({ file, now: () => new Date("2026-01-01T00:00:00Z") });
  const long = "x".repeat(1_000_000);
  const turn = makeTurn({ session: "conv_old", input: [{ type: "message", role: "user", content: long }] });
  await store.commit({ turns: [turn], session: toCreate(turn, "old") });
  await store.close();
  const { code, printed } = await sessions(folder, "prune");
  assert.equal(code, 0);
  const [, bytes] = /^Deleted 1 session and 1 turn\. The store is (\d+) bytes smaller\.$/.exec(printed) ?? [];
  assert.ok(Number(bytes) > 900_000, printed);
  assert.equal((await sessions(folder, "prune")).printed, "Deleted 0 sessions and 0 turns.");
});

test("reading commands create no store, and report a store in memory as empty", async (context) => {
  const { folder, file } = makePlace(context);
  for (const args of [["list"], ["prune"]]) {
    const { code, complained } = await sessions(folder, ...args);
    assert.equal(code, 0);
    assert.match(complained, /^There is nothing to see: there is no store at /);
  }
  assert.equal((await sessions(folder, "list", "--json")).printed, "[]");
  assert.equal(existsSync(file), false);
  const memory = makePlace(context, { store: "memory:" });
  const { code, complained } = await sessions(memory.folder, "list");
  assert.equal(code, 0);
  assert.match(complained, /^There is nothing to see: the store is "memory:"/);
});

test("commands that need a store fail if there is none", async (context) => {
  const { folder, file } = makePlace(context);
  const memory = makePlace(context, { store: "memory:" });
  writeFileSync(join(memory.folder, "backup.jsonl"), "");
  for (const args of [["show", "conv_1"], ["export"], ["export", "--out", "new.jsonl"], ["delete", "conv_1"]]) {
    assert.equal((await sessions(folder, ...args)).code, 1, args.join(" "));
    assert.equal((await sessions(memory.folder, ...args)).code, 1, args.join(" "));
  }
  assert.equal((await sessions(memory.folder, "import", "backup.jsonl")).code, 1);
  assert.equal(existsSync(file), false);
  assert.equal(existsSync(join(folder, "new.jsonl")), false);
});

for (const [args, message] of [
  [["lsit"], "Unknown command 'lsit'. Did you mean 'list'? See 'portico sessions --help'."],
  [
    ["show"],
    "An ID or a hint is missing. Usage: portico sessions show (ID | --user NAME | --hint HINT) [--owner NAME] [--json] [--config FILE]",
  ],
  [
    ["delete"],
    "An ID or a hint is missing. Usage: portico sessions delete (ID… | --user NAME | --hint HINT) [--owner NAME] [--config FILE]",
  ],
  [["delete", "--owner", "bob"], "--owner needs --user or --hint."],
  [["export", "--owner", "bob"], "--owner needs --user or --hint."],
  [["delete", "conv_1", "--user", "ann"], "An ID and a hint cannot be used together."],
  [["show", "--user", "ann", "--hint", "user=ann"], "--user and --hint cannot be used together."],
  [["list", "--hint", "garden"], "The option '--hint' needs a hint such as header:X-Session-Id=garden, not 'garden'."],
  [["list", "--outside", "--user", "ann"], "What is outside of sessions has no hint."],
  [["show", "a", "b"], "Unexpected argument 'b'. See 'portico sessions show --help'."],
  [["list", "--limit", "none"], "The option '--limit' needs a number from 1 to 10000, not 'none'."],
  [["list", "--json=yes"], "The option '--json' takes no value."],
  [["list", "--jsno"], "Unknown option '--jsno'. Did you mean '--json'? See 'portico sessions list --help'."],
] as const) {
  test(`'portico sessions ${args.join(" ")}' is refused with a helpful message`, async (context) => {
    assert.deepEqual(await sessions(makeFolder(context), ...args), { code: 2, printed: "", complained: message });
  });
}

test("every command of sessions has its help", async (context) => {
  const folder = makeFolder(context);
  const group = await sessions(folder, "--help");
  assert.equal(group.code, 0);
  assert.deepEqual(await sessions(folder), group);
  assert.deepEqual(await sessions(folder, "help"), group);
  for (const name of ["list", "show", "export", "import", "delete", "prune"]) {
    assert.match(group.printed, new RegExp(`^ {2}${name} `, "m"));
    const { code, printed } = await sessions(folder, name, "--help");
    assert.equal(code, 0);
    assert.match(printed, new RegExp(`^portico sessions ${name}: [A-Z].*\\.\n\nUsage: portico sessions ${name}`));
  }
});
