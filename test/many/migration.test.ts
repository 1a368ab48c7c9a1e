/** A database of an older layout: the first process migrates it, processes of the release before go on, every other command refuses it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { makeFolder, openGateway } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { ask, newDatabase } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { checkMigrated, madeAt, readLayout } from "../store/layouts/layouts.ts";

const { skip } = need("postgres");
const { statements, archive } = readLayout("postgres", 1);

async function makeOld(context: TestContext): Promise<string> {
  const store = await newDatabase(context);
  await ask(store, statements);
  return store;
}

test(
  "a database of layout 1 is migrated at the start, with a log line, and keeps all its rows",
  { skip },
  async (context) => {
    const gateway = { sessions: { store: await makeOld(context) } };
    await checkMigrated(await openGateway(context, { gateway, now: () => madeAt }), archive);
    const again = await openGateway(context, { gateway, now: () => madeAt });
    assert.ok(!again.logged.some(({ message }) => message.includes("migrated")), "only once");
  },
);

test("two processes that start at once on a database of layout 1 migrate it once", { skip }, async (context) => {
  const gateway = { sessions: { store: await makeOld(context) } };
  const both = await Promise.all([openGateway(context, { gateway }), openGateway(context, { gateway })]);
  const said = both.map(({ logged }) => logged.filter(({ message }) => message.includes("migrated")).length);
  assert.deepEqual(said.toSorted(), [0, 1]);
});

test(
  "a migration adds only tables, and columns that a process of the layout before may leave out",
  { skip },
  async (context) => {
    const store = await makeOld(context);
    const columns = () =>
      ask(
        store,
        `SELECT table_name || '.' || column_name AS name, is_nullable = 'YES' OR column_default IS NOT NULL AS "mayLack"
        FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
      );
    const before = await columns();
    await openGateway(context, { gateway: { sessions: { store } } });
    const after = await columns();
    const known = new Set(before.map(({ name }) => name));
    assert.deepEqual(
      after.filter(({ name }) => known.has(name)),
      before,
    );
    const tableOf = ({ name }: Readonly<Record<string, unknown>>) => String(name).split(".")[0];
    const tables = new Set(before.map(tableOf));
    const added = after.filter((column) => !known.has(column["name"]) && tables.has(tableOf(column)));
    assert.ok(added.length > 0);
    assert.deepEqual(
      added.filter(({ mayLack }) => mayLack !== true),
      [],
    );
  },
);

for (const command of [["sessions", "list"], ["doctor"], ["chat", "hello"]]) {
  test(
    `\`portico ${command.join(" ")}\` refuses a database of layout 1, and leaves it as it is`,
    { skip },
    async (context) => {
      const store = await makeOld(context);
      const folder = makeFolder(context);
      writeConfig(folder, toConfig({ gateway: { adapters: { echo: { type: "echo" } }, sessions: { store } } }));
      const { code, stdout, stderr } = await runProgram(context, folder, ...command).ended;
      assert.equal(code, 1, stdout + stderr);
      assert.match(stdout + stderr, /has layout 1, and this release reads layout \d+\..*`portico start` migrates it/);
      assert.deepEqual(await ask(store, "SELECT version::int FROM layout"), [{ version: 1 }]);
    },
  );
}
