/** The operator's routes, with a memory store behind a real socket. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { suite, test, type TestContext } from "node:test";
import { readArchive } from "../../src/archive/read.ts";
import { writeArchive } from "../../src/archive/write.ts";
import type { ArchiveRecord, SessionStore } from "../../src/core/store.ts";
import { createDoor, type DoorParts } from "../../src/http/door.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import type { Operator } from "../../src/http/operator.ts";
import type { HttpLimits } from "../../src/http/settings.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { decide, toToken } from "../scripted.ts";
import { standStill } from "../still.ts";
import { everyItem, keepBelow, keepThread, makeTurn, toCreate } from "../stores/making.ts";

const general = "sk-general-0123456789";
const forHttp = "sk-http-0123456789";
const named = "sk-named-0123456789";

interface Runtime {
  readonly address: string;
  readonly store: SessionStore;
  readonly logged: string[];
  call(path: string, init?: RequestInit & { readonly token?: string; readonly duplex?: "half" }): Promise<Response>;
}

async function open(
  context: TestContext,
  wanted: {
    readonly store?: SessionStore;
    readonly limits?: Partial<HttpLimits>;
    readonly operator?: Partial<Operator>;
    readonly corsOrigins?: readonly string[];
  } = {},
): Promise<Runtime> {
  const store = wanted.store ?? createMemoryStore();
  const logged: string[] = [];
  const write = (_fields: object, message: string) => void logged.push(message);
  const operator: Operator = {
    store,
    prune: async () => ({ sessions: 1, turns: 2 }),
    writeArchive,
    readArchive,
    ...wanted.operator,
  };
  const tokens = [
    toToken(general, { opens: new Set(["operator"]) }),
    toToken(forHttp),
    toToken(named, { owner: "an-app" }),
  ];
  // No turn is run here, so the parts that answer turns are left out.
  const parts = {
    ...decide({ tokens, corsOrigins: wanted.corsOrigins ?? [] }, wanted.limits),
    now: () => new Date(),
    newId: createIds(() => new Date()),
    log: { info: () => {}, error: write },
    metrics: createMetrics(),
    operator,
  } as unknown as DoorParts;
  const door = createDoor(parts);
  context.after(() => door.close());
  const address = await door.listen();
  return {
    address,
    store,
    logged,
    call: (path, { token = general, ...init } = {}) =>
      fetch(`${address}/operator/${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) },
      }),
  };
}

const ndjson = { "content-type": "application/x-ndjson" };

async function archiveOf(store: SessionStore): Promise<string> {
  let text = "";
  for await (const line of writeArchive(store.exportRecords())) text += line;
  return text;
}

/** A store with two owners: a thread of three turns with a branch, and a session with every kind of item. */
async function fill(store: SessionStore): Promise<{ readonly thread: string; readonly other: string }> {
  const [first] = await keepThread(store, 3);
  await keepBelow(store, first!, {});
  const turn = makeTurn({ owner: "bob", session: "conv_bob", input: everyItem });
  assert.ok(await store.commit({ turns: [turn], session: toCreate(turn, "bobs") }));
  return { thread: first!.session!, other: "conv_bob" };
}

suite("the operator's routes", () => {
  test("are not available to web pages, whatever origins may call the endpoints", async (context) => {
    const origin = "https://chat.example";
    const { call } = await open(context, { corsOrigins: [origin] });
    for (const [method, status] of [
      ["OPTIONS", 405],
      ["GET", 200],
    ] as const) {
      const answer = await call("sessions", { method, headers: { origin, "access-control-request-method": "GET" } });
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get("access-control-allow-origin"), null);
    }
  });

  test("are open to the general token only", async (context) => {
    const { call } = await open(context);
    for (const token of [forHttp, named]) {
      for (const [method, path] of [
        ["GET", "sessions"],
        ["GET", "sessions/conv_1"],
        ["DELETE", "sessions/conv_1"],
        ["DELETE", "sessions?user=ann"],
        ["GET", "export"],
        ["POST", "prune"],
      ] as const) {
        const response = await call(path, { method, token });
        assert.equal(response.status, 403);
        assert.equal(((await response.json()) as Wrong).error.code, "endpoint_not_allowed");
      }
      const response = await call("import", { method: "POST", token, headers: ndjson, body: "{}" });
      assert.equal(response.status, 403);
    }
    assert.equal((await call("sessions", { token: "sk-wrong" })).status, 401);
    assert.equal((await call("sessions")).status, 200);
  });

  test("refuse a parameter that is given twice, with its name", async (context) => {
    const { call } = await open(context);
    for (const [path, param] of [
      ["sessions?owner=a&owner=b", "owner"],
      ["sessions?after=a&after=b", "after"],
      ["export?session=a&session=b", "session"],
    ] as const) {
      const response = await call(path);
      assert.equal(response.status, 400, path);
      const { error } = (await response.json()) as { error: { code: string; param: string } };
      assert.deepEqual([error.code, error.param], ["invalid_value", param]);
    }
  });

  test("list sessions in pages, of all owners or of one", async (context) => {
    const { call, store } = await open(context);
    const { thread, other } = await fill(store);
    const first = (await (await call("sessions?limit=1")).json()) as List;
    assert.equal(first.hasMore, true);
    const second = (await (await call(`sessions?limit=1&after=${first.data[0]?.id}`)).json()) as List;
    assert.equal(second.hasMore, false);
    assert.deepEqual([...first.data, ...second.data].map(({ id }) => id).toSorted(), [thread, other].toSorted());
    const ofBob = (await (await call("sessions?owner=bob")).json()) as List;
    assert.deepEqual(
      ofBob.data.map(({ id, owner, turns }) => ({ id, owner, turns })),
      [{ id: other, owner: "bob", turns: 1 }],
    );
    for (const right of ["", "1000"]) assert.equal((await call(`sessions?limit=${right}`)).status, 200);
    for (const wrong of ["0", "1001", "-1", "ten", "1.5", "1e2"]) {
      const response = await call(`sessions?limit=${wrong}`);
      assert.equal(response.status, 400);
      assert.equal(((await response.json()) as Wrong).error.param, "limit");
    }
  });

  test("show a session with all of its turns, and without its hint", async (context) => {
    const { call, store } = await open(context);
    const { thread, other } = await fill(store);
    const response = await call(`sessions/${thread}`);
    assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
    const shown = (await response.json()) as { object: string; turns: { id: string }[] };
    assert.equal(shown.object, "session");
    assert.equal(shown.turns.length, 4);
    assert.ok(!("hint" in shown));
    const bobs = (await (await call(`sessions/${other}`)).json()) as { turns: { input: unknown }[] };
    assert.deepEqual(bobs.turns[0]?.input, JSON.parse(JSON.stringify(everyItem)));
    assert.equal((await call("sessions/conv_gone")).status, 404);
  });

  test("delete a session", async (context) => {
    const { call, store } = await open(context);
    const { other } = await fill(store);
    const response = await call(`sessions/${other}`, { method: "DELETE" });
    assert.deepEqual(await response.json(), { id: other, object: "session", deleted: true });
    assert.equal(await store.readSession(other), undefined);
    assert.equal((await call(`sessions/${other}`, { method: "DELETE" })).status, 404);
  });

  test("export an archive that gives the same store when it is imported elsewhere", async (context) => {
    const { call, store } = await open(context);
    const { thread } = await fill(store);
    const exported = await call("export");
    assert.match(exported.headers.get("content-type") ?? "", /^application\/x-ndjson/);
    const archive = await exported.text();
    assert.equal(archive, await archiveOf(store));
    const there = await open(context);
    const imported = await there.call("import", { method: "POST", headers: ndjson, body: archive });
    assert.deepEqual(await imported.json(), { object: "import", sessions: 2, turns: 5, hintsTaken: 0 });
    assert.equal(await archiveOf(there.store), archive);
    assert.equal((await there.store.findSession("alice", "hint"))?.id, thread);
    const again = await there.call("import", { method: "POST", headers: ndjson, body: archive });
    assert.deepEqual(await again.json(), { object: "import", sessions: 0, turns: 0, hintsTaken: 0 });
    const one = await (await call(`export?session=${thread}`)).text();
    assert.equal(one.split("\n").filter((line) => line.includes('"type":"session"')).length, 1);
    assert.equal((await call("export?session=conv_gone")).status, 404);
  });

  test("name a wrong line of an archive, and import nothing", async (context) => {
    const source = createMemoryStore();
    await fill(source);
    const lines = (await archiveOf(source)).split("\n");
    const { call, store } = await open(context);
    for (const [change, message] of [
      [(all: string[]) => all.with(3, '{"type":'), /^Line 4 of the archive is not JSON/],
      [(all: string[]) => all.with(2, '{"type":"sesion"}'), /^Line 3 .* unknown type "sesion"/],
      [(all: string[]) => all.with(4, (all[4] ?? "").replace('"completed"', '"done"')), /^Line 5 .*'status'/],
      [
        (all: string[]) => all.with(7, (all[7] ?? "").replace('"role":"user"', '"role":7')),
        /^Line 8 .*'input\.\d\.role'/,
      ],
      [(all: string[]) => all.with(0, (all[0] ?? "").replace('"version":1', '"version":2')), /^Line 1 .*version 2/],
      [(all: string[]) => all.slice(1), /^Line 1 .*out of place/],
      [(all: string[]) => all.slice(0, 5), /was cut off/],
      [() => [], /is empty/],
      [(all: string[]) => all.with(1, "\ud800"), /^Line 2 /],
    ] as const) {
      const body = change(lines).join("\n");
      const response = await call("import", { method: "POST", headers: ndjson, body });
      assert.equal(response.status, 400);
      const { error } = (await response.json()) as Wrong;
      assert.match(error.message, message);
      assert.match(error.message, /Nothing was imported\.$/);
      assert.deepEqual(await store.listSessions({ limit: 10 }), []);
    }
  });

  test("report a wrong line at once, while the rest of the archive is still arriving", async (context) => {
    const { address } = await open(context);
    const client = send(`${address}/operator/import`, {
      method: "POST",
      headers: { authorization: `Bearer ${general}`, ...ndjson },
    });
    client.on("error", () => {});
    client.write('{"type":"portico","version":1,"hintKey":"a2V5"}\n{"type":"what"}\n');
    const [response] = (await once(client, "response")) as [{ readonly statusCode: number }];
    assert.equal(response.statusCode, 400);
    client.destroy();
  });

  test("accept an archive by its own media type, which other routes refuse", async (context) => {
    const { call, address } = await open(context);
    for (const type of ["text/csv", "an archive"]) {
      const response = await call("import", { method: "POST", headers: { "content-type": type }, body: "a" });
      assert.equal(response.status, 415);
      assert.match(((await response.json()) as Wrong).error.message, /application\/x-ndjson/);
    }
    const chat = await fetch(`${address}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${forHttp}`, ...ndjson },
      body: "{}",
    });
    assert.equal(chat.status, 415);
  });

  for (const [name, bodyIdleTimeoutMs, code] of [
    ["import nothing when the client disconnects during the import", 30_000, "client_closed"],
    ["abandon an import that stops arriving, and import nothing", 50, "request_timeout"],
  ] as const) {
    test(name, async (context) => {
      const source = createMemoryStore();
      await fill(source);
      const archive = await archiveOf(source);
      const begun = Promise.withResolvers<void>();
      const ended = Promise.withResolvers<unknown>();
      const store = createMemoryStore();
      async function* watch(records: AsyncIterable<ArchiveRecord>): AsyncGenerator<ArchiveRecord> {
        for await (const record of records) {
          begun.resolve();
          yield record;
        }
      }
      const importRecords: SessionStore["importRecords"] = async (records) => {
        try {
          return await store.importRecords(watch(records));
        } catch (thrown) {
          ended.resolve(thrown);
          throw thrown;
        }
      };
      const { address } = await open(context, {
        limits: { bodyIdleTimeoutMs },
        operator: { store: { ...store, importRecords } },
      });
      const client = send(`${address}/operator/import`, {
        method: "POST",
        headers: { authorization: `Bearer ${general}`, ...ndjson },
      });
      client.on("error", () => {});
      client.write(archive.slice(0, -20));
      await begun.promise;
      if (code === "request_timeout") {
        const [response] = (await once(client, "response")) as [{ readonly statusCode: number }];
        assert.equal(response.statusCode, 408);
      }
      client.destroy();
      assert.equal(((await ended.promise) as { code: string }).code, code);
      assert.deepEqual(await store.listSessions({ limit: 10 }), []);
    });
  }

  test("import an archive that arrived while the gateway itself was blocked", async (context) => {
    const source = createMemoryStore();
    await fill(source);
    const archive = await archiveOf(source);
    const begun = Promise.withResolvers<void>();
    const store = createMemoryStore();
    const importRecords: SessionStore["importRecords"] = (records) => {
      begun.resolve();
      return store.importRecords(records);
    };
    const limits = { bodyIdleTimeoutMs: 500 };
    const { address } = await open(context, { limits, operator: { store: { ...store, importRecords } } });
    const client = send(`${address}/operator/import`, {
      method: "POST",
      headers: { authorization: `Bearer ${general}`, ...ndjson },
    });
    client.write(archive.slice(0, 20));
    await begun.promise;
    await new Promise(setImmediate);
    client.end(archive.slice(20));
    await new Promise(process.nextTick);
    standStill(2 * limits.bodyIdleTimeoutMs);
    const [response] = (await once(client, "response")) as [{ readonly statusCode: number }];
    assert.equal(response.statusCode, 200);
  });

  test("export no faster than the client reads, and stop when it disconnects", async (context) => {
    const left = Promise.withResolvers<void>();
    let exportedTurns = 0;
    async function* endless(): AsyncGenerator<ArchiveRecord> {
      try {
        yield { type: "store", hintKey: "a2V5" };
        const turn = makeTurn({ output: [{ type: "message", role: "assistant", content: "x".repeat(100_000) }] });
        for (; ; exportedTurns++) {
          yield { type: "turn", turn };
          await new Promise(setImmediate);
        }
      } finally {
        left.resolve();
      }
    }
    const store = createMemoryStore();
    const { address } = await open(context, { operator: { store: { ...store, exportRecords: endless } } });
    const client = send(`${address}/operator/export`, { headers: { authorization: `Bearer ${general}` } });
    client.end();
    const [response] = (await once(client, "response")) as [NodeJS.ReadableStream & { destroy(): void }];
    // Nobody reads: the export pauses.
    for (let before = -1; before !== exportedTurns;) {
      before = exportedTurns;
      for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    }
    assert.ok(exportedTurns < 500, `${exportedTurns} turns were exported to nobody`);
    response.destroy();
    await left.promise;
  });

  test("cut off an export that fails, and log the cause", async (context) => {
    const opened = Promise.withResolvers<void>();
    async function* failing(): AsyncGenerator<ArchiveRecord> {
      yield { type: "store", hintKey: "a2V5" };
      yield { type: "turn", turn: makeTurn({ model: "m".repeat(1_000_000) }) };
      await opened.promise;
      throw new Error("the disk is gone");
    }
    const store = createMemoryStore();
    const { call, logged } = await open(context, { operator: { store: { ...store, exportRecords: failing } } });
    const response = await call("export");
    opened.resolve();
    await assert.rejects(response.text());
    assert.equal(logged.length, 1);
  });

  test("apply retention when the operator asks, without a body", async (context) => {
    const { call } = await open(context);
    const response = await call("prune", { method: "POST" });
    assert.deepEqual(await response.json(), { object: "prune", sessions: 1, turns: 2 });
  });
});

interface Wrong {
  readonly error: { readonly message: string; readonly code: string; readonly param: string | null };
}

interface List {
  readonly hasMore: boolean;
  readonly data: readonly { readonly id: string; readonly owner: string; readonly turns: number }[];
}
