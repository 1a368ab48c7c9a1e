/** Where the store is searched for, with servers that a test scripts. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, test } from "node:test";
import { readAddress } from "../../src/stores/redis/address.ts";
import type { Client } from "../../src/stores/redis/client.ts";
import { createServers } from "../../src/stores/redis/servers.ts";

/** What a server replies to a search, to CLUSTER SLOTS and to EXISTS; or why it accepts no connection, if it answers. */
type Answers = Error | "silence" | { readonly slots?: unknown; readonly exists?: Error };

const alone = new Error("ERR This instance has cluster support disabled");
const away = new Error("connect ECONNREFUSED");
const movedTo = (place: string) => ({ slots: [], exists: new Error(`MOVED 1 ${place}`) });

/** The servers of a URL; which of them were asked, in order; and which of these connections were left. */
function search(url: string, answers: Readonly<Record<string, Answers>>, timeoutMs = 60_000) {
  const asked: string[] = [];
  const left: string[] = [];
  const servers = createServers(
    readAddress(url),
    ({ host, port }) => {
      const name = `${host}:${port}`;
      const found = answers[name] ?? away;
      asked.push(name);
      const leaving = Promise.withResolvers<never>();
      leaving.promise.catch(() => {});
      const client = Object.assign(new EventEmitter(), {
        async connect() {
          if (found === "silence") await leaving.promise;
          if (found instanceof Error) throw found;
        },
        async sendCommand([command]: readonly string[]) {
          const { slots = alone, exists = 0 } = found as Exclude<Answers, Error | string>;
          const reply = command === "CLUSTER" ? slots : exists;
          if (reply instanceof Error) throw reply;
          return reply;
        },
        destroy() {
          left.push(name);
          leaving.reject(new Error("The client is destroyed."));
        },
      });
      return client as unknown as Client;
    },
    timeoutMs,
  );
  return { servers, asked, left };
}

describe("the search for the server that has the store", () => {
  for (const host of ["", "?", "one"]) {
    test(`follows a cluster node that calls the host '${host}'`, async () => {
      const answers = { "one:1": movedTo(`${host}:2`), "one:2": { slots: [] } };
      const { servers, asked, left } = search("redis://one:1", answers);
      assert.deepEqual((await servers.find()).place, { host: "one", port: 2 });
      assert.deepEqual([asked, left], [["one:1", "one:2"], ["one:1"]]);
    });

    test(`asks the other nodes that one has told with the host '${host}' when that is away`, async () => {
      const answers: Record<string, Answers> = { "one:1": { slots: [[0, 9, [host, 1], [host, 2]]] }, "one:2": {} };
      const { servers, asked } = search("redis://one:1", answers);
      await servers.find();
      answers["one:1"] = away;
      assert.deepEqual((await servers.find()).place, { host: "one", port: 2 });
      assert.deepEqual(asked, ["one:1", "one:1", "one:2"]);
    });
  }

  test("begins where the store was last, or has moved since", async () => {
    const answers: Record<string, Answers> = { "one:1": movedTo("two:2"), "two:2": { slots: [] }, "two:3": {} };
    const { servers, asked } = search("redis://one:1", answers);
    await servers.find();
    await servers.find();
    servers.follow(new Error("CLUSTERDOWN The cluster is down"));
    await servers.find();
    servers.follow(new Error("MOVED 1 :3"));
    assert.deepEqual((await servers.find()).place, { host: "two", port: 3 });
    assert.deepEqual(asked, ["one:1", "two:2", "two:2", "two:2", "two:3"]);
  });

  test("takes a server that refuses to tell about itself, as it may serve all the same", async () => {
    const refusal = new Error("NOPERM this user has no permissions to run the command");
    const { servers, left } = search("redis://one:1,two:2", { "one:1": { slots: refusal, exists: refusal } });
    assert.deepEqual((await servers.find()).place, { host: "one", port: 1 });
    assert.deepEqual(left, []);
  });

  test("leaves a silent server, and sooner if there are others to ask", async (context) => {
    // The deadline alone does not keep the process alive.
    const alive = setInterval(() => {}, 1_000);
    context.after(() => clearInterval(alive));
    for (const [url, ms] of [
      ["redis://one:1", 20],
      ["redis://one:1,two:2", 5],
    ] as const) {
      const { servers, left } = search(url, { "one:1": "silence", "two:2": "silence" }, 20);
      await assert.rejects(servers.find(), { message: `Redis has not answered for ${ms} ms.` });
      assert.ok(left.includes("one:1"));
    }
  });

  for (const [why, answers, message, places] of [
    [
      "a node that it was led to is away, whatever the others say",
      { "one:1": movedTo("three:3"), "two:2": { slots: [], exists: new Error("LOADING Redis is loading") } },
      /^the node three:3, which the cluster points to, cannot be reached \(connect ECONNREFUSED\)$/,
      ["one:1", "three:3", "two:2"],
    ],
    [
      "a listed node cannot serve it now, though another points elsewhere",
      { "one:1": movedTo("two:2"), "two:2": { slots: [], exists: new Error("CLUSTERDOWN The cluster is down") } },
      /^CLUSTERDOWN /,
      ["one:1", "two:2"],
    ],
    [
      "two nodes point to each other",
      { "one:1": movedTo("two:2"), "two:2": movedTo("one:1") },
      /^MOVED /,
      ["one:1", "two:2"],
    ],
    ["a password is wrong, without asking others", { "one:1": new Error("WRONGPASS no") }, /^WRONGPASS /, ["one:1"]],
  ] as const) {
    test(`reports that ${why}`, async () => {
      const { servers, asked, left } = search("redis://one:1,two:2", answers);
      await assert.rejects(servers.find(), { message });
      assert.deepEqual([asked, left], [places, places]);
    });
  }
});
