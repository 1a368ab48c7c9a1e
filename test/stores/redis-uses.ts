/** What running turns of one gateway continue is not pruned by another gateway on the same Redis. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { SessionStore } from "../../src/core/store.ts";
import { createRedisStore } from "../../src/stores/redis.ts";
import { startGateway, token } from "../gateway.ts";
import { keepBelow, keepLoose, keepSession, pruneAll } from "./making.ts";
import type { RedisServer } from "./redis-server.ts";

const operator = "sk-operator-0123456789abcdef";

export function describeUses(server: () => RedisServer): void {
  const open = async (context: TestContext, prefix: string): Promise<SessionStore> => {
    const store = await createRedisStore({ url: server().url(prefix), warn: () => {} });
    context.after(() => store.close());
    return store;
  };
  const readUses = (prefix: string) => server().ask("HVALS", `{${prefix}}:used`);
  const untilUsed = async (prefix: string, id: string) => {
    while (!(await readUses(prefix)).includes(id)) await wait(5);
  };

  describe("what running turns continue, of gateways on one Redis,", () => {
    test("stays when another of them prunes", async (context) => {
      const [one, other] = [await open(context, "used"), await open(context, "used")];
      await one.claim();
      const [idle, resumed] = [await keepSession(one, {}), await keepSession(one, {})];
      const loose = await keepLoose(one, 3, new Date(0));
      const active = await keepSession(one, { createdAt: new Date(0) });
      const branch = await keepBelow(one, active, { createdAt: new Date(0) });
      const inUse = new Set([resumed.session!, resumed.id, loose[1]!.id, active.session!, branch.id]);
      const tellUse = one.peers!.shareUse(() => inUse);
      tellUse();
      await untilUsed("used", resumed.id);
      const before = { idleBefore: new Date("2100-01-01T00:00:00Z") };
      const pruned = await pruneAll(other, before);
      assert.deepEqual([pruned.sessions, pruned.turns], [1, 1]);
      assert.equal(await other.readSession(idle.session!), undefined);
      const surplus = await pruneAll(other, { maxSessionsPerOwner: 1 });
      assert.equal(surplus.sessions, 0);
      for (const turn of [resumed, branch, loose[1]!]) await keepBelow(one, turn, {});
      inUse.clear();
      tellUse();
      while ((await readUses("used")).includes(resumed.id)) await wait(5);
      const later = await pruneAll(other, before);
      assert.deepEqual([later.sessions, later.turns], [2, 9]);
    });

    test("stops a removal of its tree that has begun", async (context) => {
      const [one, other] = [await open(context, "begun"), await open(context, "begun")];
      await one.claim();
      const thread = await keepLoose(one, 600, new Date(0));
      const rules = { idleBefore: new Date(1) };
      const begun = await other.prune(rules);
      assert.equal(begun.more, true);
      one.peers!.shareUse(() => new Set([thread[150]!.id]))();
      await untilUsed("begun", thread[150]!.id);
      assert.equal((await pruneAll(other, rules)).turns, 0);
      assert.equal((await other.readPath(thread[150]!.id)).length, 151);
    });

    test("is pruned when the gateway that ran them is gone", async (context) => {
      const store = await open(context, "gone");
      const turn = await keepSession(store, {});
      await server().ask("HSET", "{gone}:used", "a gateway", JSON.stringify([turn.session]));
      assert.equal((await pruneAll(store, { maxSessionsPerOwner: 0 })).sessions, 1);
      assert.equal(await readUses("gone"), "*0\r\n");
    });

    test("is still told after Redis has lost it", async (context) => {
      const times = { leaseMs: 1_000, renewMs: 50 };
      const store = await createRedisStore({ url: server().url("lost"), times, warn: () => {} });
      context.after(() => store.close());
      await store.claim();
      store.peers!.shareUse(() => new Set(["conv_1"]))();
      await untilUsed("lost", "conv_1");
      await server().ask("DEL", "{lost}:used");
      await untilUsed("lost", "conv_1");
      await store.close();
      assert.equal(await readUses("lost"), "*0\r\n");
    });

    test("is stored there although another gateway prunes meanwhile", async (context) => {
      const sessions = { store: server().url("meanwhile"), max_sessions_per_owner: 1 };
      const start = (delay: number) =>
        startGateway(context, {
          auth: { token: operator },
          sessions,
          adapters: { echo: { type: "echo", delay_ms: delay } },
        });
      const [quick, slow] = [await start(0), await start(20)];
      const post = (url: string, bearer: string, body: object) =>
        fetch(url, {
          method: "POST",
          headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      const ask = (address: string, user: string, ...words: readonly string[]) => {
        const messages = words.map((content, index) => ({ role: index % 2 === 0 ? "user" : "assistant", content }));
        return post(`${address}/v1/chat/completions`, token, { model: "echo", user, messages });
      };
      const { headers: told } = await ask(quick.address, "ann", "One.");
      await ask(quick.address, "bob", "Two.");
      // A caller that shows its history waits for no other, so it holds no name in Redis.
      const answer = ask(slow.address, "ann", "One.", "One.", "a b c d e f g h i j k l m n o p q r s t");
      await untilUsed("meanwhile", told.get("x-portico-session")!);
      const pruned = await post(`${quick.address}/operator/prune`, operator, {});
      assert.deepEqual(await pruned.json(), { object: "prune", sessions: 1, turns: 1 });
      const { status, headers: kept } = await answer;
      assert.deepEqual([status, kept.get("x-portico-history")], [200, "matched"]);
      assert.equal(kept.get("x-portico-session"), told.get("x-portico-session"));
    });
  });
}
