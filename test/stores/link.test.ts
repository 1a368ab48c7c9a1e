/** The connection to the server that has the store, with servers that a test scripts. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, test, type TestContext } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";
import type { Client } from "../../src/stores/redis/client.ts";
import { createLink } from "../../src/stores/redis/link.ts";

const place = { host: "redis", port: 6379 };
const moved = new Error("MOVED 1 redis:6380");

/** A client whose commands are answered by the test. */
function makeClient() {
  const pending: Promise<unknown>[] = [];
  const asked: { answer(reply: string | Error): void }[] = [];
  const client = Object.assign(new EventEmitter(), {
    isReady: true,
    isClosed: false,
    asked,
    sendCommand() {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      pending.push(promise);
      asked.push({
        answer: (reply) => (reply instanceof Error ? reject(reply) : resolve(reply)),
      });
      return promise;
    },
    close() {
      client.isClosed = true;
      return Promise.allSettled(pending);
    },
    destroy() {
      client.isReady = false;
      for (const { answer } of asked) answer(new Error("The client is destroyed."));
    },
    lose(reason: Error) {
      client.isReady = false;
      client.emit("terminated", reason);
      for (const { answer } of asked) answer(reason);
    },
  });
  return client;
}

type ScriptedClient = ReturnType<typeof makeClient>;

/** A link, and how the test answers its search for a server. */
async function open(context: TestContext, timeoutMs = 60_000) {
  const searches: PromiseWithResolvers<ScriptedClient>[] = [];
  const followed: unknown[] = [];
  const link = createLink({
    servers: {
      async find() {
        const search = Promise.withResolvers<ScriptedClient>();
        searches.push(search);
        return { client: (await search.promise) as unknown as Client, place };
      },
      follow: (refusal) => void followed.push(refusal),
    },
    replicas: 0,
    copyingMs: 1_000,
    timeoutMs,
    onFound: () => {},
  });
  context.after(() => link.close());
  const opening = link.open(1_000);
  const first = makeClient();
  searches[0]!.resolve(first);
  await opening;
  return { link, first, searches, followed };
}

describe("a link to the server that has the store", () => {
  test("gives those who wait for a lost server the next one, and tells those who were not answered why", async (context) => {
    const { link, first, searches } = await open(context);
    const reason = new Error("gone");
    const unanswered = assert.rejects(link.send(["PING"], false), (thrown) => thrown === reason);
    first.lose(reason);
    await unanswered;
    assert.equal(link.server(), undefined);
    await assert.rejects(link.send(["PING"], false), { code: "store_unavailable", cause: reason });
    const back = link.whenBack(60_000);
    const second = makeClient();
    searches[1]!.resolve(second);
    await back;
    const answered = link.send(["PING"], false);
    second.asked[0]!.answer("PONG");
    assert.equal(await answered, "PONG");
    assert.equal(first.isReady, false);
  });

  test("searches once, however many refusals say that the store has moved, and asks the old node until then", async (context) => {
    const { link, first, searches, followed } = await open(context);
    const refused = [link.send(["GET", "a"], false), link.send(["GET", "b"], false), link.send(["GET", "c"], false)];
    first.asked[0]!.answer(moved);
    first.asked[1]!.answer(moved);
    first.asked[2]!.answer("still there");
    const [one, two, three] = await Promise.allSettled(refused);
    assert.deepEqual([one?.status, two?.status], ["rejected", "rejected"]);
    assert.deepEqual(three, { status: "fulfilled", value: "still there" });
    assert.deepEqual([searches.length, followed], [2, [moved, moved]]);
    const before = link.server();
    const found = link.whenFound(60_000);
    searches[1]!.resolve(makeClient());
    await found;
    assert.notEqual(link.server(), before);
    assert.equal(first.isClosed, true);
  });

  test("searches again if the server that it found is lost by then", async (context) => {
    const { link, first, searches } = await open(context);
    first.lose(new Error("gone"));
    const back = link.whenBack(60_000);
    const lost = makeClient();
    lost.isReady = false;
    searches[1]!.resolve(lost);
    while (searches.length < 3 && link.server() === undefined) await nextRound();
    assert.equal(link.server(), undefined);
    searches[2]!.resolve(makeClient());
    await back;
    assert.notEqual(link.server(), undefined);
  });

  test("does not leave the new node because the old one is silent", async (context) => {
    const { link, first, searches } = await open(context, 20);
    const silent = assert.rejects(link.send(["GET", "a"], false), /destroyed/);
    const refused = assert.rejects(link.send(["GET", "b"], false), moved);
    first.asked[1]!.answer(moved);
    await refused;
    const found = link.whenFound(60_000);
    const second = makeClient();
    searches[1]!.resolve(second);
    await found;
    // The deadline alone does not keep the process alive.
    const alive = setInterval(() => {}, 1_000);
    await silent;
    clearInterval(alive);
    assert.equal(second.isReady, true);
    assert.equal(searches.length, 2);
  });

  test("searches no more when it is closed, and destroys what it finds by then", async (context) => {
    const { link, first, searches } = await open(context);
    first.lose(new Error("gone"));
    await link.close();
    const late = makeClient();
    searches[1]!.resolve(late);
    await nextRound();
    assert.deepEqual([late.isReady, searches.length, link.server()], [false, 2, undefined]);
  });

  test("closes the server that it has when it is closed", async (context) => {
    const { link, first } = await open(context);
    await link.close();
    assert.equal(first.isClosed, true);
  });
});
