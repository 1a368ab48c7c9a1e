/** A database that is away, is not ours, or is newer than we are: nothing is said to be kept that is not, and all goes on by itself. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { call, endpoints, tell, tellWell } from "../harness/client.ts";
import { makeFolder, openGateway, say, seenBy } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { ask, newDatabase, openPostgres } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { until } from "../store/aid.ts";

const away = need("initdb").skip;
const { skip } = need("postgres");

/** A gateway on a server of its own. */
async function openDurable(context: TestContext) {
  const server = await openPostgres(context, { isDurable: true });
  const store = await server.createDatabase();
  return { server, ...(await openGateway(context, { gateway: { sessions: { store } } })) };
}

test(
  "while PostgreSQL is away turns are refused before a model is asked, and go on by themselves when it is back",
  { skip: away },
  async (context) => {
    const { server, address, model } = await openDurable(context);
    const more = { user: "ann" };
    await tellWell(address, { on: "chat", say: "first", more });
    await server.kill();
    const refused = await tell(address, { on: "chat", say: "lost", more });
    assert.equal(refused.status, 503);
    assert.equal(refused.error?.["code"], "store_unavailable");
    for (const on of endpoints) assert.equal((await tell(address, { on, say: "lost", more })).status, 503);
    assert.equal((await call(address, "GET", "/readyz")).status, 503);
    assert.equal(model.turns.length, 1);
    await server.start();
    await until(async () => (await call(address, "GET", "/readyz")).status === 200);
    await tellWell(address, { on: "chat", say: "second", more });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: first", "assistant: re: first", "user: second"]);
  },
);

test(
  "an answer that PostgreSQL did not take is told as failed, and is in no session",
  { skip: away },
  async (context) => {
    const { server, address, model } = await openDurable(context);
    const more = { user: "ann" };
    model.script = async function* () {
      await server.kill();
      yield say("never kept");
    };
    const failed = await tell(address, { on: "responses", say: "lost", stream: true, more });
    assert.match(String(failed.error?.["message"]), /its database cannot be reached/);
    assert.doesNotMatch(failed.raw, /response\.completed/);
    await server.start();
    await until(async () => (await call(address, "GET", "/readyz")).status === 200);
    model.script = [say("ok")];
    await tellWell(address, { on: "responses", say: "first", more });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: first"]);
  },
);

/** What `portico start` says of a database that it does not take. */
async function refusal(context: TestContext, store: string): Promise<string> {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ gateway: { sessions: { store }, adapters: { model: { type: "echo" } } } }));
  const { code, stderr } = await runProgram(context, folder, "start").ended;
  assert.equal(code, 1);
  assert.doesNotMatch(stderr, /hush/);
  return stderr;
}

test("a database of another program is refused, and left as it is", { skip }, async (context) => {
  const store = await newDatabase(context);
  await ask(store, "CREATE TABLE session (mine TEXT)");
  assert.match(await refusal(context, store), /tables of another program.*left as it is/);
  const tables = await ask(store, "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()");
  assert.deepEqual(
    tables.map(({ name }) => name),
    ["session"],
  );
});

test("a database that a newer release made is refused, and left as it is", { skip }, async (context) => {
  const store = await newDatabase(context);
  await openGateway(context, { gateway: { sessions: { store } } });
  await ask(store, "UPDATE layout SET version = 99");
  assert.match(await refusal(context, store), /layout 99.*Start the newer release/);
});

test(
  "a server that is not there, and a database that is not, are each told in a sentence, without the password",
  { skip },
  async (context) => {
    const nowhere = "postgres://me:hush@127.0.0.1:1/portico";
    assert.match(await refusal(context, nowhere), /cannot be reached/);
    const missing = new URL(await newDatabase(context));
    missing.pathname = "/nowhere";
    missing.password = "hush";
    assert.match(await refusal(context, missing.href), /"nowhere" does not exist.*gateway\.sessions\.store/);
  },
);
