/** Whole gateways on Redis, and the command line beside them. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createRedisStore } from "../../src/stores/redis.ts";
import { portico } from "../cli/screen.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { keepThread } from "./making.ts";
import { startProxy } from "./redis-proxy.ts";
import type { RedisServer } from "./redis-server.ts";

export function describeGateway(server: () => RedisServer): void {
  test("a gateway on Redis continues a user's session on both endpoints, and after a restart", async (context) => {
    const settings = { sessions: { store: server().url() }, adapters: { echo: { type: "echo" } } };
    const ask = async (address: string, path: string, body: object) => {
      const answer = await fetch(`${address}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "echo", user: "zoë", ...body }),
      });
      assert.equal(answer.status, 200);
      await answer.text();
      const told = ["session", "history", "context"].map((name) => answer.headers.get(`x-portico-${name}`));
      return { session: told[0], history: told[1], context: told[2] };
    };
    const countScripts = async () => {
      // A session is released after its answer was sent.
      while (!(await server().ask("KEYS", "*:held:*")).startsWith("*0")) await wait(5);
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await server().ask("INFO", "commandstats"))?.[1]);
    };
    const first = await startGateway(context, settings);
    const one = await ask(first.address, "/v1/chat/completions", { messages: [{ role: "user", content: "One." }] });
    const before = await countScripts();
    const two = await ask(first.address, "/v1/responses", { input: "Two.", stream: true });
    assert.equal(
      (await countScripts()) - before,
      5,
      "the session, its turn, the session as it is by then, stored, released",
    );
    await first.close();
    const second = await startGateway(context, settings);
    const three = await ask(second.address, "/v1/chat/completions", {
      messages: [{ role: "user", content: "Three." }],
    });
    assert.deepEqual(
      [one, two, three].map(({ history, context }) => [history, context]),
      [
        ["new", "1 items"],
        ["continued", "3 items"],
        ["continued", "5 items"],
      ],
    );
    assert.deepEqual(new Set([one.session, two.session, three.session]).size, 1);
    await second.close();
  });

  test("while Redis is unreachable a gateway refuses what must be stored, answers the rest, and then recovers by itself", async (context) => {
    const proxy = await startProxy(server().port);
    context.after(() => proxy.close());
    const store = `redis://127.0.0.1:${proxy.port}?prefix=away`;
    const { address } = await startGateway(context, { sessions: { store }, adapters: { echo: { type: "echo" } } });
    const ask = async (body: object) => {
      const answer = await fetch(`${address}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Hello" }], ...body }),
      });
      return { status: answer.status, body: await answer.text(), retry: answer.headers.get("retry-after") };
    };
    assert.equal((await ask({ user: "zoë" })).status, 200);
    proxy.mode = "refuse";
    proxy.cut();
    const refused = await ask({ user: "zoë" });
    assert.deepEqual([refused.status, refused.retry], [503, "1"]);
    assert.match(refused.body, /Redis cannot be reached.*"store_unavailable"/);
    assert.equal((await ask({})).status, 200);
    const notReady = await fetch(`${address}/readyz`);
    assert.equal(notReady.status, 503);
    assert.match(await notReady.text(), /Redis cannot be reached/);
    proxy.mode = "pass";
    while ((await ask({ user: "zoë" })).status !== 200) await wait(20);
    assert.equal((await fetch(`${address}/readyz`)).status, 200);
  });

  test("the command line works on a store in Redis, and shows no password", async (context) => {
    const [folder, url] = [makeFolder(context), server().url("cli")];
    const configure = (store: string) => {
      const settings = {
        gateway: { http: { auth_token: token }, adapters: { echo: { type: "echo" } }, sessions: { store } },
      };
      writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
    };
    configure(url);
    const absent = await portico(folder, "sessions", "export");
    assert.deepEqual(
      [absent.code, absent.complained],
      [1, `There is nothing to see: there is no store at ${url} yet.`],
    );
    assert.equal(await server().ask("KEYS", "{cli}:*"), "*0\r\n");
    const store = await createRedisStore({ url, warn: () => {} });
    context.after(() => store.close());
    await store.claim();
    const [turn] = await keepThread(store, 2);
    assert.match((await portico(folder, "sessions", "list")).printed, new RegExp(`${turn!.session}  alice  2`));
    await portico(folder, "sessions", "export", "--out", "backup.jsonl");
    assert.equal((await portico(folder, "sessions", "delete", turn!.session!)).code, 0);
    assert.equal(await store.findSession("alice", "hint"), undefined);
    const imported = await portico(folder, "sessions", "import", "backup.jsonl");
    assert.equal(imported.printed, "Imported 1 session and 2 turns.");
    assert.equal((await store.findSession("alice", "hint"))?.id, turn!.session);
    const pruned = await portico(folder, "sessions", "prune");
    assert.equal(pruned.printed, "Deleted 0 sessions and 0 turns.");
    const doctor = await portico(folder, "doctor", "--offline");
    assert.match(
      doctor.printed,
      /warning {2}store: redis:\/\/127\.0\.0\.1:\d+\/0\?prefix=cli, schema version 2; .*appendonly/,
    );
    await server().ask("SET", "{cli}:version", "1");
    const older = await portico(folder, "doctor", "--offline");
    assert.match(older.printed, /prefix=cli, schema version 1, upgraded to 2 at the next start; /);
    await server().ask("SET", "{cli}:version", "2b");
    const bent = await portico(folder, "doctor", "--offline");
    assert.match(bent.printed, /problem {2}store: .*prefix=cli has schema version 2b, and this release knows /);
    configure(url.replace("://", "://me:hunter2@"));
    const checked = await portico(folder, "check");
    assert.match(checked.printed, /"store": "redis:\/\/\*\*\*@127/);
    const refused = await portico(folder, "doctor", "--offline");
    assert.match(refused.printed, /problem {2}store: .* cannot be opened: WRONGPASS/);
    assert.doesNotMatch(checked.printed + checked.complained + refused.printed, /hunter2/);
  });
}
