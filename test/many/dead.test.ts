/** A process that dies: its background turns read as interrupted, its keys are free, and its threads go on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, hear, startServer, tell, tellWell } from "../harness/client.ts";
import { makeFolder, openGateway } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { ask, newDatabase } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { beginEvents, chunk, writeEvent } from "../harness/upstream.ts";
import { askWell, keyed, look, remove } from "../outlive/outlive.ts";

const { skip } = need("postgres");

test(
  "turns of a process that is killed are told as interrupted, and others answer in its place",
  { skip },
  async (context) => {
    const server = await startServer(context);
    const { script } = server;
    const store = await newDatabase(context);
    const folder = makeFolder(context);
    const gateway = { adapters: server.adapters, sessions: { store } };
    writeConfig(folder, toConfig({ gateway }));
    const program = runProgram(context, folder, "start");
    const address = await program.address();
    const other = await openGateway(context, { gateway });
    const more = { user: "ann" };
    await tellWell(address, { on: "chat", say: "first", more });

    server.script = (_received, response) => {
      beginEvents(response);
      writeEvent(response, chunk({ role: "assistant", content: "half" }));
    };
    const background = await begin(address, { on: "responses", say: "hi", stream: true, more: { background: true } });
    const [, id = ""] = /"id":"(resp_\w+)"/.exec(await hear(background, "half")) ?? [];
    const withKey = keyed({ on: "chat", say: "hi", stream: true }, "k");
    await hear(await begin(address, withKey), "half");
    const inThread = { on: "chat", say: "second", stream: true, more } as const;
    await hear(await begin(address, inThread), "half");
    assert.equal((await look(other.address, id)).body.status, "in_progress");
    const followed = look(other.address, id, "?stream=true");
    await program.stop("SIGKILL");
    server.script = script;

    const next = await tell(other.address, { on: "chat", say: "third", more });
    assert.equal(next.text, "re: third");
    assert.deepEqual(server.shown.at(-1), ["user: first", "assistant: re: first", "user: third"]);
    assert.match((await followed).raw, /"code":"interrupted".*response\.failed.*\[DONE\]/s);
    const { body } = await look(other.address, id);
    assert.equal(body.status, "failed");
    assert.match(body.error.message, /was stopped while this turn ran/);
    assert.match((await askWell(other.address, withKey)).raw, /re/);

    assert.equal((await remove(other.address, id)).status, 200);
    assert.deepEqual(await ask(store, "SELECT key FROM running WHERE key = $1", id.slice("resp_".length)), []);
  },
);
