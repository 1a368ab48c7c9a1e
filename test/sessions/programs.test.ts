/** Two programs in one session: an agent's title request never becomes part of its main request's context. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tellWell, type Wish } from "../harness/client.ts";
import { repeatLast, seenBy, shareGateway } from "../harness/house.ts";
import { type Ends, mainWish, playPrograms, titleWish, tools } from "./programs.ts";

const open = shareGateway();

for (const first of ["title", "main"] as const) {
  for (const ends of ["title", "main", "before"] as const satisfies readonly Ends[]) {
    const when = ends === "before" ? "and has ended when the other comes" : `and the ${ends} request ends first`;
    test(`the ${first} request comes first ${when}: the main request sees only itself`, async () => {
      const gateway = await open();
      await playPrograms(first, ends, [gateway, gateway]);
    });
  }
}

/** A client that sends only what is new, its turns one after the other; returns what the model saw of the last. */
async function play(wishes: readonly Wish[]): Promise<{ readonly history: string | null; readonly seen: string[] }> {
  const { address, model } = await open();
  model.script = repeatLast;
  let history: string | null = null;
  for (const wish of wishes) history = (await tellWell(address, wish)).headers.get("x-portico-history");
  return { history, seen: seenBy(model.turns.at(-1)) };
}

const say = (instructions: string, words: string) => [
  { role: "system", content: instructions },
  { role: "user", content: words },
];

test("under `user` a client that changes its prompt and adds tools in its second turn keeps its memory", async () => {
  const { history, seen } = await play([
    { on: "chat", say: say("Be brief.", "one"), more: { user: "delta" } },
    { on: "chat", say: say("Be long.", "two"), more: { user: "delta", tools } },
  ]);
  assert.equal(history, "continued");
  assert.deepEqual(seen, ["system: Be long.", "user: one", "assistant: re: one", "user: two"]);
});

for (const more of [{}, { tools }]) {
  const having = "tools" in more ? "with tools" : "without tools";
  test(`under a header a client ${having} whose prompt has a date keeps its memory`, async () => {
    const headers = { "x-session-id": `dated ${having}` };
    const { history, seen } = await play([
      { on: "chat", say: say("It is Monday.", "one"), headers, more },
      { on: "chat", say: say("It is Tuesday.", "two"), headers, more },
    ]);
    assert.equal(history, "continued");
    assert.deepEqual(seen, ["system: It is Tuesday.", "user: one", "assistant: re: one", "user: two"]);
  });
}

test("under a header a request that only adds tools, or has no instructions, goes on", async () => {
  const headers = { "x-session-id": "adds tools" };
  const { history } = await play([
    { on: "chat", say: say("Be brief.", "one"), headers },
    { on: "chat", say: say("Be brief.", "two"), headers, more: { tools } },
  ]);
  assert.equal(history, "continued");
  const without = { "x-session-id": "without instructions" };
  const other = await play([
    { on: "chat", say: "one", headers: without },
    { on: "chat", say: say("Be long.", "two"), headers: without, more: { tools } },
  ]);
  assert.equal(other.history, "continued");
});

test("a title that is asked for again leaves the tip where it is", async () => {
  const { address } = await open();
  await tellWell(address, mainWish("again"));
  const title = await tellWell(address, titleWish("again"));
  assert.equal(title.headers.get("x-portico-history"), "new");
  const next = await tellWell(address, mainWish("again", "Go on."));
  assert.deepEqual(
    [next.headers.get("x-portico-history"), next.headers.get("x-portico-context")],
    ["continued", "4 items"],
  );
});

test("a main request that resends a history which is not stored takes the tip from a title as well", async () => {
  const { address } = await open();
  await tellWell(address, titleWish("resent"));
  const history = [
    { role: "system", content: "You are an agent." },
    { role: "user", content: "before" },
    { role: "assistant", content: "yes" },
    { role: "user", content: "now" },
  ];
  const headers = { "x-session-id": "resent" };
  const resent = await tellWell(address, { on: "chat", say: history, headers, more: { tools } });
  assert.equal(resent.headers.get("x-portico-history"), "foreign");
  const next = await tellWell(address, mainWish("resent", "Go on."));
  assert.equal(next.headers.get("x-portico-history"), "continued");
});
