import assert from "node:assert/strict";
import { test } from "node:test";
import type { Delta } from "../../src/core/delta.ts";
import { createChangingRoute } from "../../src/core/route/changing.ts";
import type { Route } from "../../src/core/route/route.ts";
import { toTurn } from "./route-lanes.ts";

const { signal } = new AbortController();

/** A route that says its name and then waits to be let go, and that tells when it is closed. */
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

/** A turn, one step at a time. */
function setOut(route: Route): AsyncIterator<readonly Delta[]> {
  return route.stream(toTurn(), signal)[Symbol.asyncIterator]();
}

async function step(deltas: AsyncIterator<readonly Delta[]>): Promise<string> {
  const { done, value } = await deltas.next();
  return done === true ? "end" : (value as readonly Delta[]).map((delta) => ("text" in delta ? delta.text : "")).join();
}

test("turns on their way arrive as they set out, later ones go the new way, and the old one is closed after the last", async () => {
  const [old, other] = [createNamed("old"), createNamed("other")];
  const changing = createChangingRoute(old.route);
  const turns = [setOut(changing), setOut(changing)] as const;
  assert.deepEqual([await step(turns[0]), await step(turns[1])], ["old", "old"]);
  const changed = changing.change(other.route);
  assert.equal(await step(setOut(changing)), "other");
  assert.deepEqual([changing.contextWindow("any"), changing.states()[0]?.name], [5, "other"]);
  old.going.resolve();
  assert.deepEqual([await step(turns[0]), await step(turns[0]), old.said], ["over", "end", []]);
  assert.deepEqual([await step(turns[1]), await step(turns[1])], ["over", "end"]);
  await changed;
  assert.deepEqual([old.said, other.said], [["closed"], []]);
});

test("a route that nobody is on is closed at once, and a turn that took no step is not on it", async () => {
  const [old, other] = [createNamed("old"), createNamed("other")];
  const changing = createChangingRoute(old.route);
  const waiting = setOut(changing);
  await changing.change(other.route);
  assert.deepEqual(old.said, ["closed"]);
  assert.equal(await step(waiting), "other");
  await setOut(changing).return?.();
});

test("a way is left by whoever gives up, and by whoever fails", async () => {
  const [old, other] = [createNamed("old"), createNamed("other")];
  const changing = createChangingRoute(old.route);
  const [leaving, failing] = [setOut(changing), setOut(changing)];
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

test("a count of tokens and a list of models keep the way that they took open", async () => {
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

test("closing closes every route once, also those that turns are still on", async () => {
  const [first, second, third] = [createNamed("first"), createNamed("second"), createNamed("third")];
  const changing = createChangingRoute(first.route);
  const turn = setOut(changing);
  await step(turn);
  const changed = changing.change(second.route);
  await changing.change(third.route);
  await changing.close();
  first.going.resolve();
  await turn.return?.();
  await changed;
  assert.deepEqual([first.said, second.said, third.said], [["closed"], ["closed"], ["closed"]]);
});

test("a route that cannot be closed is told to whoever changed it, and to nobody later", async () => {
  const old = createNamed("old", () => Promise.reject(new Error("it will not close")));
  const changing = createChangingRoute(old.route);
  await assert.rejects(changing.change(createNamed("other").route), /it will not close/);
  await changing.close();
});
