/** `portico sessions`: what is stored, read and changed beside a running gateway. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { call, tell, tellWell } from "../harness/client.ts";
import { type Gateway, makeFolder, openGateway, seenBy, shareGateway, token } from "../harness/house.ts";
import { type Ended, runProgram, toConfig, writeConfig } from "../harness/program.ts";

const open = shareGateway({ http: { tokens: [{ name: "notes", token: "sk-notes-0123456789abcdef" }] } });

/** Runs `portico sessions ARGS` in a gateway's folder. */
function sessions(context: TestContext, folder: string, ...args: readonly string[]): Promise<Ended> {
  if (!existsSync(join(folder, "portico.json"))) writeConfig(folder, toConfig());
  return runProgram(context, folder, "sessions", ...args).ended;
}

/** A session of two turns under a `user`; returns its id, and those of its turns. */
async function keep({ address }: Gateway, user: string, own: string = token) {
  const first = await tellWell(address, { on: "responses", say: `What grows, ${user}?`, more: { user }, token: own });
  const second = await tellWell(address, { on: "chat", say: "And in the sun?", more: { user }, token: own });
  return { session: second.headers.get("x-portico-session")!, first: first.id };
}

async function statusOf({ address }: Gateway, id: string): Promise<number> {
  return (await call(address, "GET", `/v1/responses/${id}`)).status;
}

test("list names every session with its owner, as a line or as JSON, and finds those of a user", async (context) => {
  const gateway = await open();
  const [ann, other] = [await keep(gateway, "ann"), await keep(gateway, "ann", "sk-notes-0123456789abcdef")];
  const ben = await keep(gateway, "ben");
  const { code, stdout } = await sessions(context, gateway.folder, "list");
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^${ann.session} +default .*What grows, ann\\?`, "m"));
  assert.match(stdout, new RegExp(`^${other.session} +notes `, "m"));
  const idsOf = async (...args: readonly string[]) => {
    const listed = await sessions(context, gateway.folder, "list", "--json", ...args);
    return (JSON.parse(listed.stdout) as { readonly id: string }[]).map(({ id }) => id).toSorted();
  };
  assert.deepEqual(await idsOf(), [ann.session, other.session, ben.session].toSorted());
  assert.deepEqual(await idsOf("--user", "ann"), [ann.session, other.session].toSorted());
  assert.deepEqual(await idsOf("--user", "ann", "--owner", "notes"), [other.session]);
});

test("show prints what was said, and no control character of it", async (context) => {
  const gateway = await open();
  const { session } = await keep(gateway, "carl");
  await tellWell(gateway.address, { on: "chat", say: "red \u001b[31m", more: { user: "carl" } });
  const { code, stdout } = await sessions(context, gateway.folder, "show", session);
  assert.equal(code, 0);
  for (const each of ["What grows, carl?", "re: What grows, carl?", "And in the sun?"])
    assert.ok(stdout.includes(each));
  assert.ok(!stdout.includes("\u001b"));
  const json = JSON.parse((await sessions(context, gateway.folder, "show", "--user", "carl", "--json")).stdout);
  assert.ok(JSON.stringify(json).includes(session));
});

test("delete takes a session from the running gateway, by its id or of a user, and no other", async (context) => {
  const gateway = await open();
  const [dora, emil] = [await keep(gateway, "dora"), await keep(gateway, "emil")];
  assert.equal((await sessions(context, gateway.folder, "delete", dora.session)).code, 0);
  assert.deepEqual([await statusOf(gateway, dora.first), await statusOf(gateway, emil.first)], [404, 200]);
  const of = await tell(gateway.address, { on: "responses", say: "go on", more: { previous_response_id: dora.first } });
  assert.equal(of.error?.["code"], "previous_response_not_found");
  assert.equal((await sessions(context, gateway.folder, "delete", "--user", "emil")).code, 0);
  assert.equal(await statusOf(gateway, emil.first), 404);
  const none = await sessions(context, gateway.folder, "delete", "--user", "emil");
  assert.deepEqual([none.code, none.stdout], [1, ""]);
  const anew = await tellWell(gateway.address, { on: "chat", say: "hi", more: { user: "emil" } });
  assert.equal(anew.headers.get("x-portico-history"), "new");
});

test("an export is imported beside another gateway with its hints, and the conversation continues there", async (context) => {
  const gateway = await open();
  const { session, first } = await keep(gateway, "fritz");
  const { code, stderr } = await sessions(context, gateway.folder, "export", session, "--out", "fritz.jsonl");
  assert.equal(code, 0, stderr);
  const file = join(gateway.folder, "fritz.jsonl");
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const before = readFileSync(file, "utf8");
  for (const line of before.trim().split("\n")) JSON.parse(line);
  const again = await sessions(context, gateway.folder, "export", session, "--out", "fritz.jsonl");
  assert.equal(again.code, 1);
  assert.equal(readFileSync(file, "utf8"), before, "an existing file is never overwritten");

  const there = await openGateway(context);
  writeConfig(there.folder, toConfig());
  const importing = runProgram(context, there.folder, "sessions", "import");
  importing.child.stdin!.end(before);
  const imported = await importing.ended;
  assert.equal(imported.code, 0, imported.stderr);
  assert.equal(await statusOf(there, first), 200);
  const heard = await tellWell(there.address, { on: "chat", say: "Thank you", more: { user: "fritz" } });
  assert.equal(heard.headers.get("x-portico-history"), "continued");
  assert.deepEqual(seenBy(there.model.turns.at(-1)), [
    "user: What grows, fritz?",
    "assistant: re: What grows, fritz?",
    "user: And in the sun?",
    "assistant: re: And in the sun?",
    "user: Thank you",
  ]);
});

test("prune applies what the file allows at once, and says how much it deleted", async (context) => {
  const gateway = await openGateway(context);
  const [oldest, older, newest] = [
    await keep(gateway, "one"),
    await keep(gateway, "two"),
    await keep(gateway, "three"),
  ];
  writeConfig(gateway.folder, toConfig({ gateway: { sessions: { max_sessions_per_owner: 1 } } }));
  await gateway.close();
  const { code, stdout } = await sessions(context, gateway.folder, "prune");
  assert.equal(code, 0);
  assert.match(stdout, /\b2 sessions\b.*\b4 turns\b/);
  const again = await openGateway(context, { folder: gateway.folder });
  const statuses = await Promise.all([oldest, older, newest].map(({ first }) => statusOf(again, first)));
  assert.deepEqual(statuses, [404, 404, 200]);
});

test("prune is left to a gateway that runs on the file, because only it knows which turns run", async (context) => {
  const gateway = await openGateway(context);
  const older = await keep(gateway, "one");
  const newer = await keep(gateway, "two");
  writeConfig(gateway.folder, toConfig({ gateway: { sessions: { max_sessions_per_owner: 1 } } }));
  const { code, stderr } = await sessions(context, gateway.folder, "prune");
  assert.equal(code, 1);
  assert.match(stderr, /A gateway runs on this store.*POST \/operator\/prune/);
  const statuses = await Promise.all([older, newer].map(({ first }) => statusOf(gateway, first)));
  assert.deepEqual(statuses, [200, 200]);
});

test("where nothing is stored only an import makes a store", async (context) => {
  const folder = makeFolder(context);
  for (const args of [["list"], ["show", "conv_1"], ["export", "--out", "new.jsonl"], ["delete", "conv_1"]]) {
    assert.equal((await sessions(context, folder, ...args)).code, 1, args.join(" "));
  }
  assert.ok(!existsSync(join(folder, ".portico/portico.db")) && !existsSync(join(folder, "new.jsonl")));
});

test("a file that is no store is told as such, and left as it is", async (context) => {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ gateway: { sessions: { store: "sqlite:notes.txt" } } }));
  appendFileSync(join(folder, "notes.txt"), "my own notes, of more than a hundred bytes. ".repeat(5));
  const before = readFileSync(join(folder, "notes.txt"), "utf8");
  const { code, stdout, stderr } = await sessions(context, folder, "prune");
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /notes\.txt/);
  assert.equal(readFileSync(join(folder, "notes.txt"), "utf8"), before);
});
