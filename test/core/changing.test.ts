import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { createChangingRoute } from "../../src/core/route/changing.ts";
import type { Route } from "../../src/core/route/route.ts";
import { toTurn } from "./route-lanes.ts";

const { signal } = new AbortController();

/** A route that emits its name, waits for a signal, and records when it is closed. */
function createNamed(name: string, end: () => Promise<void> = async () => {}) {
  const going = Promise.withResolvers<void>();
  const said: string[] = [];
  async function* speak(): AsyncGenerator<readonly Delta[], void, void> {
    yield [{ type: "text", text: name }];
    await going.promise;
    yield [{ type: "text", text: "over" }];
  }
  const route: Route = {
    stream: () => speak(),
    contextWindow: () => name.length,
    speaksFor: () => (name === "old" ? ["chat"] : ["responses"]),
    countTokens: async () => (await going.promise, name.length),
    models: async () => (await going.promise, [name]),
    states: () => [{ name, state: "closed", failures: 0, opensUntil: undefined }],
    async close() {
      said.push("closed");
      await end();
    },
  };
  return { route, said, going };
}

/** A turn, pulled one step at a time. */
function startTurn(route: Route): AsyncIterator<readonly Delta[]> {
  return route.stream(toTurn(), signal)[Symbol.asyncIterator]();
}

async function step(deltas: AsyncIterator<readonly Delta[]>): Promise<string> {
  const { done, value } = await deltas.next();
  return done === true ? "end" : (value as readonly Delta[]).map((delta) => ("text" in delta ? delta.text : "")).join();
}

test("running turns finish on their route, later ones use the new route, and the old one closes after the last", async () => {
  const [old, other] = [createNamed("old"), createNamed("other")];
  const changing = createChangingRoute(old.route);
  const turns = [startTurn(changing), startTurn(changing)] as const;
  assert.deepEqual([await step(turns[0]), await step(turns[1])], ["old", "old"]);
  const changed = changing.change(other.route);
  assert.equal(await step(startTurn(changing)), "other");
  assert.deepEqual([changing.contextWindow("any"), changing.states()[0]?.name], [5, "other"]);
  assert.deepEqual(changing.speaksFor("any"), ["responses"]);
  old.going.resolve();
  assert.deepEqual([await step(turns[0]), await step(turns[0]), old.said], ["over", "end", []]);
  assert.deepEqual([await step(turns[1]), await step(turns[1])], ["over", "end"]);
  await changed;
  assert.deepEqual([old.said, other.said], [["closed"], []]);
});

test("an unused route is closed at once, and a turn that has not started does not use it", async () => {
  const [old, other] = [createNamed("old"), createNamed("other")];
  const changing = createChangingRoute(old.route);
  const waiting = startTurn(changing);
  await changing.change(other.route);
  assert.deepEqual(old.said, ["closed"]);
  assert.equal(await step(waiting), "other");
  await startTurn(changing).return?.();
});

test("a turn that is abandoned or fails releases its route", async () => {
  const [old, other] = [createNamed("old"), createNamed("other")];
  const changing = createChangingRoute(old.route);
  const [leaving, failing] = [startTurn(changing), startTurn(changing)];
  await Promise.all([step(leaving), step(failing)]);
  const changed = changing.change(other.route);
  const failed = assert.rejects(step(failing), /broken/);
  old.going.reject(new Error("broken"));
  await failed;
  assert.deepEqual(old.said, []);
  await leaving.return?.();
  await changed;
  assert.deepEqual(old.said, ["closed"]);
});

test("counting tokens and listing models keep their route open until they finish", async () => {
  for (const ask of [(route: Route) => route.countTokens(toTurn(), signal), (route: Route) => route.models()]) {
    const [old, other] = [createNamed("old"), createNamed("other")];
    const changing = createChangingRoute(old.route);
    const asked = ask(changing);
    const changed = changing.change(other.route);
    await new Promise(setImmediate);
    assert.deepEqual(old.said, []);
    old.going.resolve();
    await Promise.all([asked, changed]);
    assert.deepEqual(old.said, ["closed"]);
  }
});

test("closing closes every route once, including those that turns still use", async () => {
  const [first, second, third] = [createNamed("first"), createNamed("second"), createNamed("third")];
  const changing = createChangingRoute(first.route);
  const turn = startTurn(changing);
  await step(turn);
  const changed = changing.change(second.route);
  await changing.change(third.route);
  await changing.close();
  first.going.resolve();
  await turn.return?.();
  await changed;
  assert.deepEqual([first.said, second.said, third.said], [["closed"], ["closed"], ["closed"]]);
});

test("a failure to close a route is reported to whoever changed it, and not again later", async () => {
  const old = createNamed("old", () => Promise.reject(new Error("it will not close")));
  const changing = createChangingRoute(old.route);
  await assert.rejects(changing.change(createNamed("other").route), /it will not close/);
  await changing.close();
});
