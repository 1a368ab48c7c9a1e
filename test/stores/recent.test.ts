import assert from "node:assert/strict";
import { test } from "node:test";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { createRecent } from "../../src/stores/recent.ts";
import { keepThread, makeTurn, readTurns } from "./making.ts";

/** What a turn counts for besides the characters of its items. */
const beside = 1_000;

test("recent turns stay within their limit, and the oldest are removed first", () => {
  const recent = createRecent(10_000);
  const [one, two, three] = [makeTurn({}), makeTurn({}), makeTurn({})];
  recent.add(one, 4_000 - beside);
  recent.add(two, 4_000 - beside);
  recent.add(one, 4_000 - beside);
  recent.add(three, 4_000 - beside);
  assert.deepEqual(
    [one, two, three].map(({ id }) => recent.get(id)?.turn.id),
    [undefined, two.id, three.id],
  );
  recent.add(one, 11_000 - beside);
  assert.equal(recent.get(one.id), undefined);
  assert.equal(recent.get(two.id)?.turn, two);
  assert.equal(recent.get(two.id)?.size, 4_000 - beside);
});

test("short recent turns stay within their limit too, including the overhead of each", () => {
  const recent = createRecent(100_000);
  const turns = Array.from({ length: 1_000 }, () => makeTurn({}));
  for (const turn of turns) recent.add(turn, 10);
  const left = turns.filter(({ id }) => recent.get(id) !== undefined);
  assert.ok(left.length <= 100, `${left.length} turns remain`);
  assert.equal(left.at(-1), turns.at(-1));
});

test("recent turns with many small values stay within their limit too, however few characters they have", () => {
  const recent = createRecent(1_000_000);
  const own = Array.from({ length: 1_000 }, () => ({}));
  const extra = { dialect: "responses", fields: { own } } as const;
  const input = [{ type: "message", role: "user", content: "hi", extra }] as const;
  const turns = Array.from({ length: 100 }, () => makeTurn({ input }));
  for (const turn of turns) recent.add(turn, JSON.stringify(input).length);
  const left = turns.filter(({ id }) => recent.get(id) !== undefined);
  assert.ok(left.length > 0 && left.length <= 1_000_000 / (own.length * 64), `${left.length} turns remain`);
  recent.forget(left.map(({ id }) => id));
  const kept = makeTurn({});
  recent.add(kept, 10);
  for (const turn of turns) {
    recent.add(turn, 10);
    recent.forget([turn.id]);
  }
  assert.equal(recent.get(kept.id)?.turn, kept, "what is forgotten takes no room");
});

test("recent turns of a session are forgotten together, and other paths remain when none of it was cached", () => {
  const recent = createRecent(100_000);
  const [one, two, three] = [makeTurn({ session: "a" }), makeTurn({ session: "b" }), makeTurn({})];
  for (const turn of [one, two, three]) recent.add(turn, 5_000 - beside);
  const path = recent.path(two.id);
  recent.forgetSessions([]);
  recent.forgetSessions(["c"]);
  recent.forget([makeTurn({}).id]);
  assert.equal(recent.path(two.id), path);
  recent.forgetSessions(["a", "c"]);
  assert.deepEqual(
    [one, two, three].map(({ id }) => recent.get(id)?.turn.id),
    [undefined, two.id, three.id],
  );
  assert.equal(recent.path(one.id), undefined);
});

test("deleted recent turns are forgotten, and free their room for others", () => {
  const recent = createRecent(10_000);
  const [one, two, three] = [makeTurn({}), makeTurn({}), makeTurn({})];
  recent.add(one, 5_000 - beside);
  recent.add(two, 5_000 - beside);
  recent.forget([one.id, three.id]);
  recent.add(three, 5_000 - beside);
  assert.deepEqual(
    [one, two, three].map(({ id }) => recent.get(id)?.turn.id),
    [undefined, two.id, three.id],
  );
  recent.clear();
  recent.add(one, 10_000 - beside);
  assert.deepEqual(
    [one, two, three].map(({ id }) => recent.get(id)?.turn.id),
    [one.id, undefined, undefined],
  );
});

test("a path of recent turns is forgotten with the first of them that is removed", () => {
  const recent = createRecent(10_000);
  const one = makeTurn({});
  const two = makeTurn({ parent: one.id });
  const three = makeTurn({ parent: two.id });
  recent.add(one, 4_000 - beside);
  recent.add(two, 4_000 - beside);
  assert.equal(recent.path(two.id)?.length, 2);
  recent.add(three, 4_000 - beside);
  assert.equal(recent.get(one.id), undefined);
  assert.equal(recent.path(three.id), undefined);
});

test("a path is the same whether its turns are in memory, in the file, or in both", async () => {
  const turn = makeTurn({});
  const size = beside + JSON.stringify(turn.input).length + JSON.stringify(turn.output).length;
  for (const maxRecentSize of [0, size * 2, size * 100]) {
    const store = createSqliteStore({ file: ":memory:", maxRecentSize });
    const thread = await keepThread(store, 5);
    const ids = thread.map(({ id }) => id);
    for (let round = 0; round < 2; round++) {
      const path = await readTurns(store, ids.at(-1)!);
      assert.deepEqual(
        path.map(({ id }) => id),
        ids,
      );
      assert.deepEqual(
        path.map(({ input, output }) => ({ input, output })),
        thread.map(({ input, output }) => ({ input, output })),
      );
    }
    await store.close();
    await assert.rejects(store.readPath(ids.at(-1)!), { code: "store_unavailable" });
  }
});
