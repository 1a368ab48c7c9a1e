/** What `portico sessions` finds without a session's id: turns outside of sessions, and sessions by their user. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { Runtime } from "../../src/cli/runtime.ts";
import type { SessionStore } from "../../src/core/store.ts";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../gateway.ts";
import { keepBelow, keepThread, makeTurn, toCreate } from "../stores/making.ts";
import { type Ended, runIn } from "./screen.ts";

const runtime: Runtime = {
  tryAdapters: () => assert.fail("no adapter may be created"),
  open: () => assert.fail("no gateway may be started"),
};

interface Place {
  readonly folder: string;
  readonly store: SessionStore;
  sessions(...args: readonly string[]): Promise<Ended>;
}

/** A store that a gateway has open, and the command line next to it. */
function makePlace(context: TestContext): Place {
  const folder = makeFolder(context);
  const settings = { gateway: { http: { auth_token: "sk-test-0123456789abcdef" } } };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(settings), { mode: 0o600 });
  const store = createSqliteStore({ file: join(folder, ".portico/portico.db") });
  context.after(() => store.close());
  return { folder, store, sessions: (...args) => runIn(folder, ["sessions", ...args], { runtime }) };
}

test("turns outside of sessions are listed on request, and the list of sessions mentions them", async (context) => {
  const { store, sessions } = makePlace(context);
  assert.equal((await sessions("list", "--outside")).complained, "Nothing is stored outside of sessions.");
  const [inSession] = await keepThread(store, 1);
  assert.equal((await sessions("list")).complained, "");
  const root = makeTurn({});
  await store.commit({ turns: [root] });
  await keepBelow(store, root, {});
  const { printed, complained } = await sessions("list");
  assert.match(printed, new RegExp(inSession!.session!));
  assert.equal(complained, "Turns are stored outside of sessions, too: add --outside");
  assert.equal((await sessions("list", "--owner", "bob")).complained, "There are no sessions of the owner 'bob'.");
  assert.equal((await sessions("list", "--user", "bob")).complained, "There is no session under this hint.");
  const outside = await sessions("list", "--outside");
  assert.match(outside.printed, new RegExp(`^${root.id} +alice +2 .*Why is the sky blue`, "m"));
  assert.doesNotMatch(outside.printed, /conv_/);
  const [listed] = JSON.parse((await sessions("list", "--outside", "--json")).printed);
  assert.deepEqual([listed.id, listed.turns], [root.id, 2]);
});

test("a turn outside of sessions is shown, exported and deleted by either id, with everything that follows it", async (context) => {
  const { folder, store, sessions } = makePlace(context);
  const root = makeTurn({});
  await store.commit({ turns: [root] });
  const middle = await keepBelow(store, root, {});
  const [left, right] = [await keepBelow(store, middle, {}), await keepBelow(store, middle, {})];
  const shown = await sessions("show", middle.id.replace("resp_", "chatcmpl-"));
  assert.equal(shown.code, 0, shown.complained);
  assert.deepEqual(shown.printed.split("\n").slice(0, 2), [
    `${middle.id} of alice, outside of sessions`,
    "with what came before it and everything after it: 4 turns, 2 threads",
  ]);
  for (const turn of [root, middle, left, right]) assert.match(shown.printed, new RegExp(`^-- ${turn.id} `, "m"));
  const json = JSON.parse((await sessions("show", root.id, "--json")).printed);
  assert.deepEqual([json.id, json.owner, json.turns.length], [root.id, "alice", 4]);

  assert.equal((await sessions("export", middle.id, "--out", "thread.jsonl")).code, 0);
  const removed = await sessions("delete", middle.id);
  assert.deepEqual(removed, { code: 0, printed: `Deleted ${middle.id} and 2 that followed it.`, complained: "" });
  for (const turn of [middle, left, right]) assert.equal(await store.findTurn("alice", turn.id), undefined);
  assert.notEqual(await store.findTurn("alice", root.id), undefined);
  const taken = await sessions("import", join(folder, "thread.jsonl"));
  assert.equal(taken.printed, "Imported 0 sessions and 3 turns.");
  assert.equal((await store.readPath(right.id)).length, 3);
});

test("the id of a turn in a session is refused with the session's id", async (context) => {
  const { store, sessions } = makePlace(context);
  const [first] = await keepThread(store, 1);
  for (const command of ["show", "export", "delete"]) {
    const { code, complained } = await sessions(command, first!.id);
    assert.equal(code, 1);
    assert.equal(
      complained,
      `'${first!.id}' is a turn of the session '${first!.session}'. Use the session's id instead.`,
    );
  }
  assert.notEqual(await store.findTurn("alice", first!.id), undefined);
});

test("the sessions of a user are listed, shown, exported and deleted, of every owner or of one", async (context) => {
  const { folder, store, sessions } = makePlace(context);
  for (const [owner, hint] of [
    ["default", "user:ann"],
    ["notes", "user:ann"],
    ["notes", "user:ben"],
    ["notes", "header:x-session-id:garden"],
  ] as const) {
    const turn = makeTurn({ owner, session: `conv_${owner}_${hint.split(":").at(-1)}` });
    await store.commit({ turns: [turn], session: toCreate(turn, hint) });
  }
  const idsIn = (text: string) => [...new Set(text.match(/conv_\w+/g))].toSorted();
  const ofAnn = ["conv_default_ann", "conv_notes_ann"];
  assert.deepEqual(idsIn((await sessions("list", "--user", "ann")).printed), ofAnn);
  assert.deepEqual(idsIn((await sessions("show", "--hint", "user=ann")).printed), ofAnn);
  assert.deepEqual(idsIn((await sessions("show", "--user", "ann", "--owner", "notes")).printed), ["conv_notes_ann"]);
  assert.deepEqual(idsIn((await sessions("list", "--user", "ann", "--owner", "notes")).printed), ["conv_notes_ann"]);
  assert.deepEqual(idsIn((await sessions("list", "--hint", "header:X-Session-Id=garden")).printed), [
    "conv_notes_garden",
  ]);
  const shown = JSON.parse((await sessions("show", "--user", "ann", "--json")).printed);
  assert.deepEqual(shown.map(({ id }: { id: string }) => id).toSorted(), ofAnn);

  assert.equal((await sessions("export", "--user", "ann", "--out", "ann.jsonl")).code, 0);
  assert.deepEqual(idsIn(readFileSync(join(folder, "ann.jsonl"), "utf8")), ofAnn);
  const removed = await sessions("delete", "--user", "ann");
  assert.deepEqual(idsIn(removed.printed), ofAnn);
  assert.deepEqual(idsIn((await sessions("list")).printed), ["conv_notes_ben", "conv_notes_garden"]);
  const none = await sessions("delete", "--user", "ann");
  assert.deepEqual([none.code, none.complained], [1, "There is no session under this hint."]);
  assert.equal((await sessions("import", "ann.jsonl")).printed, "Imported 2 sessions and 2 turns.");
  assert.deepEqual(idsIn((await sessions("list", "--user", "ann")).printed), ofAnn);
});

test("an import reports how many sessions came without their hints, and restores hints that are free again", async (context) => {
  const { store, sessions } = makePlace(context);
  const [first] = await keepThread(store, 1);
  await sessions("export", "--out", "backup.jsonl");
  await store.deleteSession("alice", first!.session!);
  const [since] = await keepThread(store, 1);
  const taken = await sessions("import", "backup.jsonl");
  assert.equal(taken.printed, "Imported 1 session and 1 turn.");
  assert.match(taken.complained, /^1 session can be found only by id, because others have the hints by now\./);
  await sessions("delete", since!.session!);
  assert.deepEqual(await sessions("import", "backup.jsonl"), {
    code: 0,
    printed: "Imported 0 sessions and 0 turns.",
    complained: "",
  });
  assert.equal((await store.findSession("alice", "hint"))?.id, first!.session);
});
