/** The module adapter: which files it accepts, what it reports about others, and how it handles what modules throw. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { adapterOptions } from "../../src/adapters/index.ts";
import { guardAdapter } from "../../src/adapters/module/guard.ts";
import { toLimits } from "../../src/adapters/type.ts";
import { createModule } from "./made.ts";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Adapter } from "../../src/core/ports.ts";
import type { Turn } from "../../src/core/turn.ts";
import { load } from "../config/surroundings.ts";
import { makeFolder } from "../gateway.ts";
import { collectGarbage } from "../garbage.ts";

const turn: Turn = { id: "resp_1", model: "model-1", items: [], settings: { tools: [] }, stream: true };

function write(context: TestContext, name: string, text: string): string {
  const path = join(makeFolder(context), name);
  writeFileSync(path, text);
  return path;
}

async function collect(adapter: Adapter, signal = new AbortController().signal): Promise<Delta[]> {
  const deltas: Delta[] = [];
  for await (const batch of adapter.stream(turn, signal)) deltas.push(...batch);
  return deltas;
}

/** How a stream that yields or throws anything at all fails. */
async function failureOf(stream: () => unknown): Promise<GatewayError> {
  try {
    await collect(guardAdapter({ stream: stream as Adapter["stream"] }));
  } catch (thrown) {
    assert.ok(thrown instanceof GatewayError, String(thrown));
    return thrown;
  }
  return assert.fail("It did not fail.");
}

const sayIt = `({ async *stream(turn) { yield [{ type: "text", text: turn.model + " " + JSON.stringify(options) }]; } })`;

for (const [name, text] of [
  ["adapter.ts", `interface Options { a: number }\nexport default (options: Options) => ${sayIt};`],
  ["adapter.mjs", `export default function make(options) { return ${sayIt}; }`],
  ["adapter.cjs", `module.exports = (options) => ${sayIt};`],
  [
    "bundled.cjs",
    `exports[Symbol.toStringTag] = "Module";\nexports.default = (options) => ${sayIt};\nexports.version = 1;`,
  ],
  ["object.mjs", `const options = { a: 1 };\nexport default ${sayIt};`],
  [
    "class.ts",
    `class Mine { #a; constructor(a) { this.#a = a; } async *stream(turn) { yield [{ type: "text", text: turn.model + " " + JSON.stringify({ a: this.#a }) }]; } }\nexport default ({ a }) => new Mine(a);`,
  ],
] as const) {
  test(`${name} may export an adapter`, async (context) => {
    const adapter = createModule({ path: write(context, name, text), options: { a: 1 } });
    assert.deepEqual(await collect(adapter), [{ type: "text", text: 'model-1 {"a":1}' }]);
  });
}

test("the adapter's other members are available unchanged", async (context) => {
  const text = `export default {
    speaks: ["chat", "responses"], size: 7,
    async *stream() {}, contextWindow() { return this.size; }, async countTokens() { return this.size; },
    async models() { throw new Error("sk-1"); }, async close() { this.size = 0; },
  };`;
  const adapter = createModule({ path: write(context, "whole.mjs", text) });
  assert.deepEqual([adapter.speaks, adapter.contextWindow?.("m")], [["chat", "responses"], 7]);
  assert.equal(await adapter.countTokens?.(turn, new AbortController().signal), 7);
  await assert.rejects(async () => adapter.models?.(), { code: "adapter_error" });
  await adapter.close?.();
  assert.equal(adapter.contextWindow?.("m"), 0);
});

test("null means absent", async (context) => {
  const text = `export default { async *stream() {
    yield [{ type: "text", text: "hi", logprobs: null }, { type: "notes", notes: { fingerprint: null, serviceTier: "flex" } }];
  } };`;
  const adapter = createModule({ path: write(context, "nulls.mjs", text) });
  const batches = await Array.fromAsync(adapter.stream(turn, new AbortController().signal));
  assert.deepEqual(batches, [
    [
      { type: "text", text: "hi" },
      { type: "notes", notes: { serviceTier: "flex" } },
    ],
  ]);
});

test("what a module changes in a turn, it changes for itself alone", async () => {
  const items = [{ type: "message", role: "user", content: [{ type: "text", text: "hi" }] }] as const;
  const asked: Turn = { ...turn, items };
  function spoil({ items: seen }: Turn): void {
    assert.deepEqual(seen, items);
    const own = seen as unknown as { content: { text: string }[] }[];
    for (const { content } of own) for (const part of content) part.text = "changed";
    own.length = 0;
  }
  const guarded = guardAdapter({
    async *stream(seen) {
      spoil(seen);
    },
    async countTokens(seen) {
      spoil(seen);
      return 1;
    },
  });
  const { signal } = new AbortController();
  await guarded.countTokens?.(asked, signal);
  await Array.fromAsync(guarded.stream(asked, signal));
  assert.deepEqual(asked.items, [{ type: "message", role: "user", content: [{ type: "text", text: "hi" }] }]);
});

test("a part that a module refuses is one of the request's own", async () => {
  const image = { type: "image", url: "https://example.test/a.png" } as const;
  const content = [{ type: "text", text: "Look:" }, image] as const;
  const asked: Turn = { ...turn, items: [{ type: "message", role: "user", content }] };
  const guarded = guardAdapter({
    async *stream({ items: [item] }) {
      assert.ok(item?.type === "message" && typeof item.content === "object");
      throw new GatewayError("unsupported_parameter", "No images.", { part: item.content[1] });
    },
  });
  const { signal } = new AbortController();
  await assert.rejects(Array.fromAsync(guarded.stream(asked, signal)), (thrown: GatewayError) => thrown.part === image);
});

test("a module need not know its context window", () => {
  const contextWindow = () => null as unknown as undefined;
  assert.equal(guardAdapter({ async *stream() {}, contextWindow }).contextWindow?.("m"), undefined);
});

test("a module may answer as many choices as were asked for, and no more", async () => {
  const deltasFor = (choices: number | undefined, choice: unknown) => {
    const stream = async function* () {
      yield [{ type: "text", text: "hi", choice }];
    };
    const guarded = guardAdapter({ stream: stream as Adapter["stream"] });
    const asked = { ...turn, settings: { ...turn.settings, choices } };
    return Array.fromAsync(guarded.stream(asked, new AbortController().signal));
  };
  assert.deepEqual(await deltasFor(3, 2), [[{ type: "text", text: "hi", choice: 2 }]]);
  assert.deepEqual(await deltasFor(undefined, null), [[{ type: "text", text: "hi" }]]);
  for (const [choices, choice] of [
    [undefined, 1],
    [3, 3],
    [3, 0],
    [3, 1.5],
    [3, "1"],
    [3, 2 ** 40],
  ] as const) {
    await assert.rejects(deltasFor(choices, choice), { code: "adapter_protocol" });
  }
});

for (const [what, text, expected] of [
  ["no default export", `export const make = 1;`, /broken\.ts has no default export\. Export a function/],
  ["a default export of another kind", `export default 5;`, /default export of .*broken\.ts must be a function/],
  [
    "an adapter without stream",
    `export default () => ({ models() {} });`,
    /must return an adapter: an object with the method stream/,
  ],
  ["a promise", `export default async () => ({ async *stream() {} });`, /not a promise/],
  [
    "a function that throws",
    `export default () => { throw new Error("no url"); };`,
    /broken\.ts exports failed: no url/,
  ],
  ["a syntax error", `export default\n  function ( {`, /broken\.ts cannot be loaded: .*broken\.ts:\d/],
  [
    "an import that does not exist",
    `import "no-such-package"; export default {};`,
    /Cannot find package 'no-such-package'/,
  ],
  [
    "a speaks member that is not a list",
    `export default { async *stream() {}, speaks: "chat" };`,
    /speaks must be a list/,
  ],
  ["a member that is not a function", `export default { async *stream() {}, close: 5 };`, /close must be a function/],
  ["a top-level await", `await 0; export default {};`, /has a top-level await\. Move that into stream\.$/],
] as const) {
  test(`a file with ${what} is reported when the gateway starts`, (context) => {
    const path = write(context, "broken.ts", text);
    assert.throws(() => createModule({ path }), expected);
  });
}

for (const [name, text, remedy] of [
  ["adapter.ts", `export default { async *stream() {} };`, '.mts, or set "type": "module" in its package.json.'],
  ["adapter.js", `import "node:fs";`, '.mjs, or set "type": "module" in its package.json.'],
  ["adapter.cjs", `export default {};`, ".mjs."],
] as const) {
  test(`an ES module that is read as CommonJS because of its name, ${name}, is reported with the remedy`, (context) => {
    const path = write(context, name, text);
    writeFileSync(join(path, "../package.json"), `{ "type": "commonjs" }`);
    assert.throws(
      () => createModule({ path }),
      ({ message }: Error) =>
        message.endsWith(`${path} is an ES module but is read as CommonJS: rename it to end in ${remedy}`),
    );
  });
}

test("a file that does not exist is reported when the gateway starts", (context) => {
  const path = join(makeFolder(context), "nowhere.ts");
  assert.throws(() => createModule({ path }), { message: `There is no file ${path} (option path).` });
  assert.throws(() => createModule({ path: makeFolder(context) }), /There is no file/);
});

test("an error that a module throws goes to the log; the caller only learns that the adapter failed", async () => {
  const thrown = new TypeError("bad key sk-1");
  const failure = await failureOf(async function* () {
    yield [{ type: "text", text: "one" }];
    throw thrown;
  });
  assert.equal(failure.code, "adapter_error");
  assert.doesNotMatch(failure.message, /sk-1/);
  assert.equal(failure.cause, thrown);
});

test("an error before the first word, or a thrown value that is no error, is handled the same way", async () => {
  const early = await failureOf(() => {
    throw new Error("early");
  });
  assert.equal(early.code, "adapter_error");
  // oxlint-disable-next-line require-yield
  const odd = await failureOf(async function* () {
    throw "words"; // oxlint-disable-line no-throw-literal
  });
  assert.match(String(odd.cause), /The module threw 'words'/);
});

test("an error with a gateway error code reaches the caller, whatever its class", async () => {
  // oxlint-disable-next-line require-yield
  const failure = await failureOf(async function* () {
    throw Object.assign(new Error("Busy."), { code: "overloaded", retryAfterSeconds: 3 });
  });
  assert.deepEqual([failure.code, failure.message, failure.retryAfterSeconds], ["overloaded", "Busy.", 3]);
  // oxlint-disable-next-line require-yield
  const other = await failureOf(async function* () {
    throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  });
  assert.equal(other.code, "adapter_error");
});

const endless: Record<string, unknown> = {};
endless["self"] = endless;

for (const said of [
  { type: "text", text: "no list" },
  "text",
  [{ type: "text" }],
  [{ type: "words", text: "x" }],
  [{ type: "toString" }],
  [undefined],
  [{ type: "tool-call", name: "look" }],
  [{ type: "usage", usage: { inputTokens: 1 } }],
  [{ type: "finish", reason: "bored" }],
  [{ type: "text", text: "x", logprobs: 5 }],
  [{ type: "reasoning", text: "x", summary: "one" }],
  [{ type: "message-end", extra: "x" }],
  [{ type: "text", text: "a", extra: "x" }],
  [{ type: "refusal", text: "a", extra: {} }],
  [{ type: "tool-call", index: 0, name: "" }],
  [{ type: "tool-call", index: 0, name: "look", callId: 5 }],
  [{ type: "tool-call", index: 0, name: "look", kind: "evil" }],
  [{ type: "usage", usage: { inputTokens: -1, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 } }],
  [
    {
      type: "usage",
      usage: { inputTokens: 1, cachedTokens: 0, cacheWriteTokens: -1, outputTokens: 0, reasoningTokens: 0 },
    },
  ],
  [{ type: "notes", notes: { serviceTier: 5 } }],
  [{ type: "text", text: 1n }],
  [{ type: "text", text: "a", extra: { fields: { size: 1n } } }],
  [{ type: "text", text: "a", logprobs: [{ logprob: 1n }] }],
  [{ type: "tool-call", index: 0, name: "look", extra: { fields: endless } }],
  [{ type: "tool-extra", index: 0, extra: { fields: endless } }],
  [{ type: "other", extra: { fields: { toJSON() {} } } }],
  [{ type: "annotation", annotation: { type: "note", fields: endless } }],
  [{ type: "annotation", annotation: { fields: {} } }],
  [{ type: "reasoning-seal" }],
  [{ type: "reasoning-extra" }],
  [{ type: "message-extra", extra: { fields: [] } }],
  [{ type: "tool-call", index: 0, name: "look", group: 5 }],
  [{ type: "tool-arguments", text: "{}" }],
  [{ type: "compaction" }],
  [{ type: "compaction", summary: "so far", kept: [] }],
  [{ type: "other", extra: { fields: {} }, exchange: { side: "model" } }],
  [{ type: "other", extra: { fields: {} }, exchange: { side: "caller", id: "1" } }],
  [{ type: "notes", notes: { fingerprint: 5 } }],
  Object.assign([], { 0: 5 }),
]) {
  test(`${inspect(said, { breakLength: Infinity })} is not a batch of deltas`, async () => {
    const failure = await failureOf(async function* () {
      yield said;
    });
    assert.equal(failure.code, "adapter_protocol");
    assert.match(String(failure.cause), /found: /);
  });
}

test("details of usage that a module leaves out, or shows as null, are none; fields may be inherited or unknown", async () => {
  const whole = { inputTokens: 3, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 };
  const text: object = Object.create({ type: "text", text: "Hi" });
  const loose = async function* () {
    yield [
      text,
      { type: "usage", usage: { inputTokens: 3, outputTokens: 2, reasoningTokens: null, cacheWriteTokens: null } },
      { type: "usage", usage: Object.create({ ...whole, cacheWriteTokens: 1 }) },
      { type: "usage", usage: whole, notes: {} },
    ];
  } as unknown as Adapter["stream"];
  const [said, ...counted] = await collect(guardAdapter({ stream: loose }));
  assert.equal(said, text);
  assert.deepEqual(
    counted.map((delta) => delta.type === "usage" && delta.usage),
    [whole, { ...whole, cacheWriteTokens: 1 }, whole],
  );
});

test("a delta with a wrong field is reported by its type", async () => {
  const failure = await failureOf(async function* () {
    yield [{ type: "usage", usage: { inputTokens: 3 } }];
  });
  assert.match(String(failure.cause), /a delta of type 'usage' with a field that is missing or wrong; found: /);
});

test("a module may say everything that an adapter can", async () => {
  const extra = { dialect: "responses", fields: { type: "note" } } as const;
  const said: readonly Delta[] = [
    { type: "reasoning", text: "Hm.", summary: 0 },
    { type: "reasoning-extra", extra },
    { type: "reasoning-seal", encrypted: "x" },
    { type: "text", text: "Hi", logprobs: [{ token: "Hi" }], extra },
    { type: "annotation", annotation: { type: "note", fields: {} } },
    { type: "message-extra", extra },
    { type: "message-end", extra },
    { type: "refusal", text: "No." },
    { type: "tool-call", index: 0, callId: "a", name: "look", group: "eyes", kind: "custom", extra },
    { type: "tool-arguments", index: 0, text: "{}" },
    { type: "tool-extra", index: 0, extra },
    { type: "other", extra, exchange: { side: "model", id: "1" } },
    { type: "compaction", summary: "so far" },
    { type: "finish", reason: "tool-calls" },
  ];
  const guarded = guardAdapter({
    async *stream() {
      yield said;
    },
  });
  assert.deepEqual(await Array.fromAsync(guarded.stream(turn, new AbortController().signal)), [said]);
});

test("a module that fails to clean up does not change how its answer ended", async () => {
  const circle: unknown[] = [];
  circle.push(circle);
  for (const tidy of [() => assert.fail("tidied"), () => 5, async () => assert.fail("tidied")]) {
    const iterator = { next: () => ({ done: false, value: circle }), return: tidy };
    const failure = await failureOf(() => ({ [Symbol.asyncIterator]: () => iterator }));
    assert.equal(failure.code, "adapter_protocol");
  }
  const thrown = await failureOf(() => {
    throw Object.create(null); // oxlint-disable-line no-throw-literal
  });
  assert.equal(thrown.code, "adapter_error");
});

const lateAnswers = [
  { limit: "first_byte", stream: true, texts: [], says: /produced nothing within 30 ms \(first_byte_timeout_ms\)/ },
  { limit: "idle", stream: true, texts: ["one"], says: /produced nothing within 40 ms \(idle_timeout_ms\)/ },
  {
    limit: "total",
    stream: false,
    texts: ["one"],
    says: /did not finish its answer within 50 ms \(total_timeout_ms\)/,
  },
] as const;

function limitsOf(firstByteMs: number, idleMs: number, totalMs: number) {
  return toLimits({ first_byte_timeout_ms: firstByteMs, idle_timeout_ms: idleMs, total_timeout_ms: totalMs });
}

for (const { limit, stream, texts, says } of lateAnswers) {
  test(`a module that exceeds the ${limit} timeout is aborted and not waited for`, async () => {
    const stopped = Promise.withResolvers<void>();
    const stuck: Adapter = {
      async *stream(_turn, signal) {
        signal.addEventListener("abort", () => stopped.resolve());
        for (const text of texts) yield [{ type: "text", text }];
        await new Promise(() => {});
      },
    };
    const adapter = guardAdapter(stuck, limitsOf(30, 40, 50));
    const received: unknown[] = [];
    const late = (async () => {
      for await (const batch of adapter.stream({ ...turn, stream }, new AbortController().signal))
        received.push(...batch);
    })();
    await assert.rejects(late, { code: "adapter_timeout", wireCode: `adapter_${limit}_timeout`, message: says });
    await stopped.promise;
    assert.deepEqual(
      received,
      texts.map((text) => ({ type: "text", text })),
    );
  });
}

test("a module is not asked for a caller that has already disconnected", async () => {
  const guarded = guardAdapter({ stream: () => assert.fail("it was asked") });
  const { code } = await Array.fromAsync(guarded.stream(turn, AbortSignal.abort())).then(
    () => assert.fail("it was answered"),
    (thrown: GatewayError) => thrown,
  );
  assert.equal(code, "client_closed");
});

test("the time that a caller takes to read does not count as the module's silence", async () => {
  const stream = async function* () {
    yield [{ type: "text" as const, text: "one" }];
    yield [{ type: "text" as const, text: "two" }];
  };
  const adapter = guardAdapter({ stream }, limitsOf(20, 20, 20));
  let received = 0;
  for await (const batch of adapter.stream({ ...turn, stream: true }, new AbortController().signal)) {
    received += batch.length;
    await wait(60);
  }
  assert.equal(received, 2);
});

test("a module that never finishes closing is not waited for", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const adapter = guardAdapter({ async *stream() {}, close: () => new Promise<void>(() => {}) });
  const closing = assert.rejects(adapter.close?.() ?? Promise.resolve(), /did not close within 5 s/);
  context.mock.timers.tick(5_000);
  await closing;
});

test("a module that never finishes listing models or counting tokens is not waited for", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const never = () => new Promise<never>(() => {});
  const adapter = guardAdapter({ async *stream() {}, models: never, countTokens: never });
  const { signal } = new AbortController();
  for (const pending of [adapter.models?.(), adapter.countTokens?.(turn, signal)]) {
    const late = assert.rejects(async () => pending, { code: "adapter_timeout", message: /did not answer within 5 s/ });
    context.mock.timers.tick(5_000);
    await late;
  }
});

test("an invalid retryAfterSeconds is ignored", async () => {
  for (const retryAfterSeconds of [-3, Number.NaN, Number.POSITIVE_INFINITY, "7"]) {
    const failure = await failureOf(() => {
      throw Object.assign(new Error("Busy."), { code: "overloaded", retryAfterSeconds });
    });
    assert.equal(failure.retryAfterSeconds, undefined);
  }
});

test("a fractional retryAfterSeconds is rounded up", async () => {
  for (const [retryAfterSeconds, expected] of [
    [0.2, 1],
    [3.5, 4],
  ]) {
    const failure = await failureOf(() => {
      throw Object.assign(new Error("Busy."), { code: "overloaded", retryAfterSeconds });
    });
    assert.equal(failure.retryAfterSeconds, expected);
  }
});

test("a context window that is not a number is a protocol error", () => {
  const adapter = guardAdapter({ async *stream() {}, contextWindow: () => Number.NaN });
  assert.throws(() => adapter.contextWindow?.("m"), { code: "adapter_protocol" });
});

test("a method that returns a wrong value or throws is an error; one that returns nothing counts as absent", async () => {
  const { signal } = new AbortController();
  const make = (found: unknown) =>
    guardAdapter({ async *stream() {}, models: async () => found, countTokens: async () => found } as Adapter);
  const unfit = { code: "adapter_protocol" };
  for (const found of ["gpt", ["gpt", { id: "mini" }], { data: [] }])
    await assert.rejects(make(found).models!(), unfit);
  for (const found of ["7", Number.NaN, -1]) await assert.rejects(make(found).countTokens!(turn, signal), unfit);
  for (const found of [undefined, null]) {
    assert.equal(await make(found).models!(), undefined);
    assert.equal(await make(found).countTokens!(turn, signal), undefined);
  }
  const broken = guardAdapter({ async *stream() {}, contextWindow: () => assert.fail("broken") });
  assert.throws(() => broken.contextWindow?.("m"), { code: "adapter_error" });
});

test("a stream that is not an async generator is a protocol error", async () => {
  const failure = await failureOf(async () => []);
  assert.match(String(failure.cause), /must be an async generator/);
});

test("a module's generator is ended when its reader stops", async () => {
  const ended = Promise.withResolvers<void>();
  const adapter = guardAdapter({
    async *stream() {
      try {
        for (;;) yield [{ type: "text", text: "x" }];
      } finally {
        ended.resolve();
      }
    },
  });
  for await (const _ of adapter.stream(turn, new AbortController().signal)) break;
  await ended.promise;
});

test("batches that a module has emitted are released before its stream ends", async () => {
  const said: WeakRef<object>[] = [];
  const adapter = guardAdapter({
    async *stream() {
      for (let number = 0; number < 100; number++) {
        const batch = [{ type: "text", text: `${number}` }] as const;
        said.push(new WeakRef(batch));
        yield batch;
      }
    },
  });
  const stream = adapter.stream(turn, new AbortController().signal)[Symbol.asyncIterator]();
  for (let number = 0; number < 100; number++) await stream.next();
  let retained = said.length;
  // The compiler, in another thread, may hold some for a moment.
  for (let round = 0; retained > 2 && round < 100; round++) {
    await wait(round);
    collectGarbage();
    retained = said.filter((batch) => batch.deref() !== undefined).length;
  }
  assert.ok(retained <= 2, `${retained} of 100 are still in memory`);
  await stream.return?.();
});

test("a turn that is cancelled between two words ends at the next pull", async () => {
  const caller = new AbortController();
  const adapter = guardAdapter({
    async *stream() {
      yield [{ type: "text", text: "one" }];
      await new Promise(() => {});
    },
  });
  const stream = adapter.stream(turn, caller.signal)[Symbol.asyncIterator]();
  await stream.next();
  caller.abort();
  await assert.rejects(Promise.resolve(stream.next()), { code: "client_closed" });
});

test("paths of adapters are resolved from the config file", async () => {
  const gateway = {
    http: { auth_token: "sk-test-0123456789abcdef" },
    default_adapter: "mine",
    adapters: {
      mine: { type: "module", path: "adapters/mine.ts", options: { path: "its/own" } },
      agent: { type: "command", argv: ["./agent", "file"], cwd: "/srv/agent" },
      other: { type: "command", argv: ["agent"] },
    },
  };
  const { config } = await load({ gateway }, { adapterOptions });
  assert.deepEqual(config.adapters["mine"]?.options, {
    path: "/etc/portico/adapters/mine.ts",
    options: { path: "its/own" },
    first_byte_timeout_ms: 120_000,
    idle_timeout_ms: 120_000,
    total_timeout_ms: 600_000,
  });
  assert.equal(config.adapters["agent"]?.options["cwd"], "/srv/agent");
  assert.equal(config.adapters["other"]?.options["cwd"], "/etc/portico");
});

test("a module may import files next to it", async (context) => {
  const folder = makeFolder(context);
  mkdirSync(join(folder, "parts"));
  writeFileSync(join(folder, "parts", "word.ts"), `export const word: string = "beside";`);
  const text = `import { word } from "./parts/word.ts";\nexport default { async *stream() { yield [{ type: "text", text: word }]; } };`;
  writeFileSync(join(folder, "adapter.ts"), text);
  assert.deepEqual(await collect(createModule({ path: join(folder, "adapter.ts") })), [
    { type: "text", text: "beside" },
  ]);
});
