import assert from "node:assert/strict";
import { test } from "node:test";
import { createModelNames } from "../../src/core/route/models.ts";
import type { Adapter } from "../../src/core/ports.ts";
import { createRoute, type Lane, type RouteParts } from "../../src/core/route/route.ts";
import type { Turn } from "../../src/core/turn.ts";

const still = {
  now: () => new Date(0),
  random: () => 0,
  wait: () => Promise.resolve(),
};

/** A lane that emits its name and the model it was asked for. */
function lane(name: string, adapter: Partial<Adapter> = {}, rest: Partial<Lane> = {}): Lane {
  const speaker: Adapter = {
    async *stream({ model }) {
      yield [{ type: "text", text: `${name}:${model}` }];
    },
    ...adapter,
  };
  return { name, models: createModelNames({}), maxAnswerCharacters: 1_000, ...rest, adapter: speaker };
}

function open(lanes: readonly Lane[], rest: Partial<RouteParts> = {}) {
  return createRoute({ lanes, defaultLane: lanes[0]!.name, ...still, ...rest });
}

function toTurn(model: string): Turn {
  return { id: "resp_1", model, items: [], settings: { tools: [] }, stream: true };
}

async function ask(route: ReturnType<typeof open>, model: string): Promise<string> {
  let answer = "";
  for await (const batch of route.stream(toTurn(model), new AbortController().signal)) {
    for (const delta of batch) if (delta.type === "text") answer += delta.text;
  }
  return answer;
}

test("an exact model name takes precedence over a prefix, and a longer prefix over a shorter one", async () => {
  const byModel = { "gpt-*": "b", "gpt-5-*": "c", "gpt-5-nano": "d", "*": "e" };
  const route = open(
    ["a", "b", "c", "d", "e"].map((name) => lane(name)),
    { byModel },
  );
  assert.equal(await ask(route, "gpt-4"), "b:gpt-4");
  assert.equal(await ask(route, "gpt-5-mini"), "c:gpt-5-mini");
  assert.equal(await ask(route, "gpt-5-nano"), "d:gpt-5-nano");
  assert.equal(await ask(route, "gpt"), "e:gpt");
});

test("a model not in the operator's table goes to the lane that lists it, otherwise to the default", async () => {
  const models = createModelNames({ model: "real", models: { fast: "small", "gpt-5": "own" } });
  const route = open([lane("a"), lane("b", {}, { models }), lane("c")], { byModel: { "gpt-*": "c" } });
  assert.equal(await ask(route, "fast"), "b:small");
  assert.equal(await ask(route, "real"), "b:real");
  assert.equal(await ask(route, "gpt-5"), "c:gpt-5");
  assert.equal(await ask(route, "constructor"), "a:constructor");
});

test("the default lane takes precedence for a model that it shares with another", async () => {
  const models = createModelNames({ model: "m" });
  const lanes = [lane("a", {}, { models }), lane("b", {}, { models })];
  for (const defaultLane of ["a", "b"]) assert.equal(await ask(open(lanes, { defaultLane }), "m"), `${defaultLane}:m`);
});

test("a lane that is missing or defined twice is reported when the route is created", () => {
  assert.throws(() => open([lane("a")], { defaultLane: "b" }), /no lane 'b', which the default names/);
  assert.throws(() => open([lane("a")], { byModel: { m: "b" } }), /no lane 'b', which the model 'm' names/);
  assert.throws(() => open([lane("a", {}, { fallback: ["b"] })]), /no lane 'b', which the fallback of 'a' names/);
  assert.throws(() => open([lane("a"), lane("a")]), /two lanes named 'a'/);
});

test("the models are those that the operator lists, and those of the other lanes that reach them", async () => {
  const models = createModelNames({ models: { fast: "small" } });
  const route = open(
    [
      lane("a", { models: async () => ["one", "gpt-4"] }),
      lane("b", { models: async () => assert.fail() }, { models }),
      lane("c", { models: async () => ["gpt-5", "unreachable"] }),
      lane("d"),
    ],
    { byModel: { "gpt-*": "c", "gpt-5": "c", house: "d" } },
  );
  assert.deepEqual(await route.models(), ["one", "fast", "gpt-5", "house"]);
});

test("the default lane uses its own name as a model where no other is known", async () => {
  const route = open([lane("agent"), lane("b", { models: async () => ["one"] }), lane("c")]);
  assert.deepEqual(await route.models(), ["agent"], "a lane behind it has no name of its own");
  assert.equal(await ask(route, "agent"), "agent:agent");
  const chosen = createModelNames({ model: "real" });
  assert.deepEqual(await open([lane("agent", {}, { models: chosen })]).models(), ["real"]);
  assert.deepEqual(await open([lane("agent")], { byModel: { house: "agent" } }).models(), ["house"]);
  assert.deepEqual(await open([lane("agent"), lane("b")], { byModel: { "a*": "b" } }).models(), []);
  assert.deepEqual(await open([lane("agent"), lane("b")], { byModel: { "b*": "b" } }).models(), ["agent"]);
  assert.deepEqual(await open([lane("agent", { models: async () => [] })]).models(), [], "it reports that it has none");
});

test("a lane that cannot list its models hides only its own", async () => {
  const down = lane("b", { models: () => Promise.reject(new Error("down")) });
  assert.deepEqual(await open([lane("a", { models: async () => ["one"] }), down]).models(), ["one"]);
  await assert.rejects(open([down]).models(), /down/);
});

test("the context window is the lane's own, otherwise what its adapter knows of the model", () => {
  const adapter = { contextWindow: (model: string) => (model === "small" ? 8_000 : undefined) };
  const models = createModelNames({ models: { fast: "small" } });
  const route = open([lane("a", adapter, { models }), lane("b", adapter, { contextWindow: 4_000 })], {
    byModel: { b: "b" },
  });
  assert.equal(route.contextWindow("fast"), 8_000);
  assert.equal(route.contextWindow("slow"), undefined);
  assert.equal(route.contextWindow("b"), 4_000);
});

test("tokens are counted by the lane that will answer, if it can", async () => {
  const count = (tokens: number) => ({ countTokens: async ({ model }: Turn) => tokens + model.length });
  const lanes = [lane("a", count(10)), lane("b", count(20), { models: createModelNames({ models: { x: "long" } }) })];
  const { signal } = new AbortController();
  assert.equal(await open(lanes).countTokens?.(toTurn("x"), signal), 24);
  const byModel = { y: "c" };
  assert.equal(await open([...lanes, lane("c")], { byModel }).countTokens(toTurn("y"), signal), undefined);
});

test("closing closes every adapter once", async () => {
  const closed: string[] = [];
  const a = lane("a", { close: async () => void closed.push("a") });
  const b = lane("b", { close: async () => void closed.push("b") });
  await open([a, b, { ...a, name: "c" }, lane("d")]).close();
  assert.deepEqual(closed, ["a", "b"]);
});
