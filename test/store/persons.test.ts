/** Deleting a person finds every turn that was said for them, whatever named its session, and no turn of anybody else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, endpoints, tell, tellWell, type Wish } from "../harness/client.ts";
import { placesWith, withStore } from "../harness/engine.ts";
import { gate, type Gateway, makeFolder, openGateway, say, seenBy } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { exportArchive, importArchive, operate, sessionIds } from "./aid.ts";

const canary = "Quetzal";
const ann = { user: "ann" };

const deleteAnn = (gateway: Gateway) => operate(gateway, "DELETE", "sessions?user=ann");

async function isGone(gateway: Gateway): Promise<void> {
  assert.deepEqual(await placesWith(gateway.folder, canary), []);
  assert.ok(!(await exportArchive(gateway)).includes(canary));
}

/** A turn of ann's, in each way in which something else than `user` names its session. */
const namings: Record<string, (gateway: Gateway, on: "chat" | "responses") => Promise<unknown>> = {
  "a header": ({ address }, on) =>
    tellWell(address, { on, say: canary, more: ann, headers: { "x-session-id": "shared" } }),
  "a header, with an Idempotency-Key": ({ address }, on) =>
    tellWell(address, { on, say: canary, more: ann, headers: { "x-session-id": "shared", "idempotency-key": "k" } }),
  "a header, in the background": async ({ address }) => {
    const headers = { "x-session-id": "shared" };
    const { id } = await tellWell(address, {
      on: "responses",
      say: canary,
      more: { ...ann, background: true },
      headers,
    });
    await call(address, "GET", `/v1/responses/${id}?stream=true`);
  },
  "a response's id": async ({ address }) => {
    const { id } = await tellWell(address, { on: "responses", say: "first" });
    await tellWell(address, { on: "responses", say: canary, more: { ...ann, previous_response_id: id } });
  },
  "a conversation": async ({ address }) => {
    const { body } = await call(address, "POST", "/v1/conversations", {});
    await tellWell(address, { on: "responses", say: canary, more: { ...ann, conversation: body.id } });
  },
};

for (const [what, live] of Object.entries(namings)) {
  for (const on of what.includes("header") && !what.includes("background") ? endpoints : (["responses"] as const)) {
    test(`${on}: a person's turn in a session that ${what} named is deleted with the person`, async (context) => {
      const gateway = await openGateway(context);
      await live(gateway, on);
      assert.notDeepEqual(await placesWith(gateway.folder, canary), []);
      const { status, body } = await deleteAnn(gateway);
      assert.equal(status, 200);
      assert.deepEqual(
        body.data.map(({ object, deleted }: { readonly object: string; readonly deleted: boolean }) => [
          object,
          deleted,
        ]),
        [["turn", true]],
      );
      await isGone(gateway);
      await gateway.close();
      assert.deepEqual(await placesWith(gateway.folder, canary), []);
    });
  }
}

test("a shared session goes on without the deleted person's turns, and keeps those of others", async (context) => {
  const gateway = await openGateway(context);
  const { address, model } = gateway;
  const wish = (words: string, user: string): Wish => {
    return { on: "chat", say: words, more: { user }, headers: { "x-session-id": "shared" } };
  };
  await tellWell(address, wish("I am Ben.", "ben"));
  await tellWell(address, wish(canary, "ann"));
  await tellWell(address, wish("Still Ben.", "ben"));
  await tellWell(address, { on: "chat", say: canary, more: ann });
  const { body } = await deleteAnn(gateway);
  const kinds = body.data.map(({ object }: { readonly object: string }) => object);
  assert.deepEqual(kinds, ["session", "turn"]);
  await isGone(gateway);
  const next = await tellWell(address, wish("And now?", "ben"));
  assert.equal(next.headers.get("x-portico-history"), "continued");
  assert.deepEqual(
    seenBy(model.turns.at(-1)).filter((line) => line.startsWith("user")),
    ["user: I am Ben.", "user: Still Ben.", "user: And now?"],
  );
});

test("a person's turn that runs in a shared session while the person is deleted is not kept", async (context) => {
  const [started, open] = [gate(), gate()];
  const gateway = await openGateway(context);
  await tellWell(gateway.address, { on: "chat", say: "Ben", headers: { "x-session-id": "shared" } });
  gateway.model.script = async function* () {
    started.open();
    await open.opened;
    yield say(canary);
  };
  const headers = { "x-session-id": "shared" };
  const running = tell(gateway.address, { on: "chat", say: canary, more: ann, headers });
  await started.opened;
  assert.equal((await deleteAnn(gateway)).status, 200);
  open.open();
  assert.equal((await running).error?.["code"], "not_found");
  await isGone(gateway);
  assert.equal((await sessionIds(gateway)).length, 1);
});

test("the turns of a person are found where an archive of them was imported", async (context) => {
  const here = await openGateway(context);
  const there = await openGateway(context);
  await namings["a header"]?.(here, "chat");
  assert.equal((await importArchive(there, await exportArchive(here))).status, 200);
  assert.notDeepEqual(await placesWith(there.folder, canary), []);
  assert.equal((await deleteAnn(there)).body.data.length, 1);
  await isGone(there);
});

test("`portico sessions delete --user` deletes a person's turns in shared sessions, and a first turn that runs", async (context) => {
  const folder = makeFolder(context);
  const gateway = await openGateway(context, { folder });
  writeConfig(folder, toConfig({ gateway: await withStore(folder, { adapters: { echo: { type: "echo" } } }) }));
  const remove = () => runProgram(context, folder, "sessions", "delete", "--user", "ann").ended;
  await namings["a header"]?.(gateway, "chat");
  const { code, stdout, stderr } = await remove();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Deleted the turn resp_\w+\.$/m);

  const [started, open] = [gate(), gate()];
  gateway.model.script = async function* () {
    started.open();
    await open.opened;
    yield say(canary);
  };
  const running = tell(gateway.address, { on: "chat", say: canary, more: ann });
  await started.opened;
  assert.match((await remove()).stderr, /no session under this hint/);
  open.open();
  assert.equal((await running).error?.["code"], "not_found");
  // Only now: to close a file that SQLite has open in the same process releases its locks against other processes.
  await isGone(gateway);
});
