/** The module adapter: which files it takes, what it says of those it does not, and what becomes of what they throw. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { adapterOptions } from "../../src/adapters/index.ts";
import { guardAdapter } from "../../src/adapters/module/guard.ts";
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

/** What becomes of a stream that yields or throws what no adapter of ours would. */
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

test("the adapter's other members are there as they are", async (context) => {
  const text = `export default {
    speaks: ["chat"], size: 7,
    async *stream() {}, contextWindow() { return this.size; }, async countTokens() { return this.size; },
    async models() { throw new Error("sk-1"); }, async close() { this.size = 0; },
  };`;
  const adapter = createModule({ path: write(context, "whole.mjs", text) });
  assert.deepEqual([adapter.speaks, adapter.contextWindow?.("m")], [["chat"], 7]);
  assert.equal(await adapter.countTokens?.(turn, new AbortController().signal), 7);
  await assert.rejects(async () => adapter.models?.(), { code: "adapter_error" });
  await adapter.close?.();
  assert.equal(adapter.contextWindow?.("m"), 0);
});

test("null says that nothing is there", async (context) => {
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

test("a module may answer as often as it was asked to, and no more often", async () => {
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
    "an import that is not there",
    `import "no-such-package"; export default {};`,
    /Cannot find package 'no-such-package'/,
  ],
  ["a dialect that nobody speaks", `export default { async *stream() {}, speaks: "chat" };`, /speaks must be a list/],
  ["a method that is none", `export default { async *stream() {}, close: 5 };`, /close must be a function/],
  ["an await outside of functions", `await 0; export default {};`, /has a top-level await/],
] as const) {
  test(`a file with ${what} is told of when the gateway starts`, (context) => {
    const path = write(context, "broken.ts", text);
    assert.throws(() => createModule({ path }), expected);
  });
}

for (const [name, text, remedy] of [
  ["adapter.ts", `export default { async *stream() {} };`, '.mts, or set "type": "module" in its package.json.'],
  ["adapter.js", `import "node:fs";`, '.mjs, or set "type": "module" in its package.json.'],
  ["adapter.cjs", `export default {};`, ".mjs."],
] as const) {
  test(`an ES module that is read as CommonJS for its name, ${name}, is told of with the remedy`, (context) => {
    const path = write(context, name, text);
    writeFileSync(join(path, "../package.json"), `{ "type": "commonjs" }`);
    assert.throws(
      () => createModule({ path }),
      ({ message }: Error) =>
        message.endsWith(`${path} is an ES module but is read as CommonJS: rename it to end in ${remedy}`),
    );
  });
}

test("a file that is not there is told of when the gateway starts", (context) => {
  const path = join(makeFolder(context), "nowhere.ts");
  assert.throws(() => createModule({ path }), { message: `There is no file ${path} (option path).` });
  assert.throws(() => createModule({ path: makeFolder(context) }), /There is no file/);
});

test("what a module throws is for the log; the caller learns that it is there", async () => {
  const thrown = new TypeError("bad key sk-1");
  const failure = await failureOf(async function* () {
    yield [{ type: "text", text: "one" }];
    throw thrown;
  });
  assert.equal(failure.code, "adapter_error");
  assert.doesNotMatch(failure.message, /sk-1/);
  assert.equal(failure.cause, thrown);
});

test("what a module throws before its first word, or is no error at all, is told the same way", async () => {
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

test("an error with a code of ours is meant for the caller, whatever its class", async () => {
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
  Object.assign([], { 0: 5 }),
]) {
  test(`${inspect(said, { breakLength: Infinity })} is no batch of deltas`, async () => {
    const failure = await failureOf(async function* () {
      yield said;
    });
    assert.equal(failure.code, "adapter_protocol");
    assert.match(String(failure.cause), /found: /);
  });
}

test("a module that tidies up badly changes nothing of how its answer ended", async () => {
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
  { limit: "first_byte", stream: true, told: [], says: /produced nothing within 30 ms \(first_byte_timeout_ms\)/ },
  { limit: "idle", stream: true, told: ["one"], says: /produced nothing within 40 ms \(idle_timeout_ms\)/ },
  { limit: "total", stream: false, told: ["one"], says: /did not finish its answer within 50 ms \(total_timeout_ms\)/ },
] as const;

for (const { limit, stream, told, says } of lateAnswers) {
  test(`a module that passes its limit '${limit}' is told to stop, and not waited for`, async () => {
    const stopped = Promise.withResolvers<void>();
    const stuck: Adapter = {
      async *stream(_turn, signal) {
        signal.addEventListener("abort", () => stopped.resolve());
        for (const text of told) yield [{ type: "text", text }];
        await new Promise(() => {});
      },
    };
    const adapter = guardAdapter(stuck, { firstByteMs: 30, idleMs: 40, totalMs: 50 });
    const heard: unknown[] = [];
    const late = (async () => {
      for await (const batch of adapter.stream({ ...turn, stream }, new AbortController().signal)) heard.push(...batch);
    })();
    await assert.rejects(late, { code: "adapter_timeout", wireCode: `adapter_${limit}_timeout`, message: says });
    await stopped.promise;
    assert.deepEqual(
      heard,
      told.map((text) => ({ type: "text", text })),
    );
  });
}

test("the time that a caller takes to read is not a module's silence", async () => {
  const stream = async function* () {
    yield [{ type: "text" as const, text: "one" }];
    yield [{ type: "text" as const, text: "two" }];
  };
  const adapter = guardAdapter({ stream }, { firstByteMs: 20, idleMs: 20, totalMs: 20 });
  let heard = 0;
  for await (const batch of adapter.stream({ ...turn, stream: true }, new AbortController().signal)) {
    heard += batch.length;
    await wait(60);
  }
  assert.equal(heard, 2);
});

test("a module that never comes to the end of its closing is not waited for", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const adapter = guardAdapter({ async *stream() {}, close: () => new Promise<void>(() => {}) });
  const closing = assert.rejects(adapter.close?.() ?? Promise.resolve(), /did not close within 5 s/);
  context.mock.timers.tick(5_000);
  await closing;
});

test("a module that never comes to the end of its list or its count is not waited for either", async (context) => {
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

test("a wait that is no number of seconds is not told", async () => {
  for (const retryAfterSeconds of [-3, Number.NaN, Number.POSITIVE_INFINITY, "7"]) {
    const failure = await failureOf(() => {
      throw Object.assign(new Error("Busy."), { code: "overloaded", retryAfterSeconds });
    });
    assert.equal(failure.retryAfterSeconds, undefined);
  }
});

test("a part of a second is waited for as a whole one", async () => {
  for (const [retryAfterSeconds, told] of [
    [0.2, 1],
    [3.5, 4],
  ]) {
    const failure = await failureOf(() => {
      throw Object.assign(new Error("Busy."), { code: "overloaded", retryAfterSeconds });
    });
    assert.equal(failure.retryAfterSeconds, told);
  }
});

test("a context window that is no number is told of", () => {
  const adapter = guardAdapter({ async *stream() {}, contextWindow: () => Number.NaN });
  assert.throws(() => adapter.contextWindow?.("m"), { code: "adapter_protocol" });
});

test("a method that gives something else, or throws, is told of; one that gives nothing is as if it were not there", async () => {
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

test("a stream that is no async generator is told of", async () => {
  const failure = await failureOf(async () => []);
  assert.match(String(failure.cause), /must be an async generator/);
});

test("a module is told when its reader has left", async () => {
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

test("what a module has said is not kept until the end of its stream", async () => {
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
  await new Promise((resolve) => setImmediate(resolve));
  collectGarbage();
  const kept = said.filter((batch) => batch.deref() !== undefined).length;
  assert.ok(kept <= 2, `${kept} of 100 are kept`);
  await stream.return?.();
});

test("a turn that is called off between two words ends at the next", async () => {
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

test("paths of adapters start from the config file", async () => {
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

test("a module may import what stands beside it", async (context) => {
  const folder = makeFolder(context);
  mkdirSync(join(folder, "parts"));
  writeFileSync(join(folder, "parts", "word.ts"), `export const word: string = "beside";`);
  const text = `import { word } from "./parts/word.ts";\nexport default { async *stream() { yield [{ type: "text", text: word }]; } };`;
  writeFileSync(join(folder, "adapter.ts"), text);
  assert.deepEqual(await collect(createModule({ path: join(folder, "adapter.ts") })), [
    { type: "text", text: "beside" },
  ]);
});
