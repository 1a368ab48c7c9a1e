/** `portico sessions …` on a store whose file is damaged: what is reported, and what can still be saved. */
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../gateway.ts";
import { keepBelow, keepThread } from "../stores/making.ts";
import { toConfig, writeConfig } from "../whole/program.ts";
import { portico } from "./screen.ts";

const marked = "the words that tell where this turn stands";
const pageBytes = 4_096;

/** A store with a session of 301 turns, of which the 101st contains the marked text. */
async function makeStore(context: TestContext) {
  const folder = makeFolder(context);
  writeConfig(folder, toConfig({ adapters: { echo: { type: "echo" } } }));
  const file = join(folder, ".portico/portico.db");
  const store = createSqliteStore({ file });
  const thread = await keepThread(store, 100);
  const before = thread.at(-1)!;
  const words = await keepBelow(store, before, { input: [{ type: "message", role: "user", content: marked }] });
  await Promise.all(Array.from({ length: 200 }, () => keepBelow(store, words, {})));
  await store.close();
  return { folder, file, session: before.session! };
}

/** Zeroes the page that contains a text, like a disk that has lost it. */
function losePage(file: string, text: string): void {
  const bytes = readFileSync(file);
  const at = bytes.indexOf(text);
  assert.ok(at > pageBytes);
  const start = at - (at % pageBytes);
  writeFileSync(file, bytes.fill(0, start, start + pageBytes));
}

const damaged =
  "The session store cannot be read: its file is damaged. Stop the gateway, " +
  "save what can be read with `portico sessions export`, and restore a backup.";

test("a read error is reported with its cause, and what was exported before it can be imported elsewhere", async (context) => {
  const { folder, file, session } = await makeStore(context);
  losePage(file, marked);
  const cause = `(${file}: database disk image is malformed)`;
  const shown = await portico(folder, "sessions", "show", session);
  assert.deepEqual([shown.code, shown.complained], [1, `${damaged} ${cause}`]);

  const out = join(folder, "saved.jsonl");
  const { code, printed, complained } = await portico(folder, "sessions", "export", "--out", "saved.jsonl");
  assert.deepEqual([code, printed], [1, ""]);
  assert.deepEqual(complained.split("\n"), [
    `${damaged} ${cause}`,
    `${out} contains what could be read before that, without an end line, so that it is not mistaken for a complete archive. ` +
      'To import that much anyway, add the line {"type":"end"} to it.',
  ]);

  const there = makeFolder(context);
  writeConfig(there, toConfig());
  assert.match((await portico(there, "sessions", "import", out)).complained, /cut off/);
  appendFileSync(out, '{"type":"end"}\n');
  const taken = await portico(there, "sessions", "import", out);
  const [, turns] = /^Imported 1 session and (\d+) turns\.$/.exec(taken.printed) ?? [];
  assert.ok(Number(turns) >= 50 && Number(turns) <= 100, taken.printed);
});

test("no archive is left behind when nothing could be read", async (context) => {
  const { folder, file } = await makeStore(context);
  losePage(file, "conv_");
  const { code, complained } = await portico(folder, "sessions", "export", "--out", "saved.jsonl");
  assert.equal(code, 1);
  assert.ok(complained.startsWith(damaged) && !complained.includes("saved.jsonl"), complained);
  assert.ok(!existsSync(join(folder, "saved.jsonl")));
});

const remedy =
  "Restore a backup (an archive or a copy of the file), or move the file away: the next start creates an empty one.";

for (const [how, harm] of [
  ["cut off", (file: string) => truncateSync(file, 10 * pageBytes)],
  ["without the page of its keys", (file: string) => losePage(file, "hint_key")],
] as const) {
  test(`a file ${how} cannot be opened, and every command reports that it is damaged`, async (context) => {
    const { folder, file } = await makeStore(context);
    harm(file);
    const expected = `The session store ${file} is damaged: database disk image is malformed. ${remedy}`;
    for (const args of [["sessions", "list"], ["sessions", "export"], ["start"]]) {
      const { code, complained } = await portico(folder, ...args);
      assert.equal(code, 1);
      assert.equal(complained.replace("Portico could not start: ", ""), expected);
    }
  });
}
