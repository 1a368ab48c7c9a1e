/** A file of an older layout: the gateway migrates it at its start, every other command refuses it and leaves it as it is. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { makeFolder, openGateway } from "../../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../../harness/program.ts";
import { databaseIn } from "../aid.ts";
import { checkMigrated, madeAt, readLayout } from "../layouts/layouts.ts";

const { statements, archive } = readLayout("sqlite", 1);

/** A data folder as the older release left it. */
function makeOld(context: TestContext): string {
  const folder = makeFolder(context);
  const file = databaseIn(folder);
  mkdirSync(dirname(file));
  const database = new DatabaseSync(file);
  database.exec(statements);
  database.close();
  return folder;
}

test("a file of layout 1 is migrated at the start, with a log line, and keeps all its rows", async (context) => {
  const folder = makeOld(context);
  const gateway = await openGateway(context, { folder, now: () => madeAt });
  await checkMigrated(gateway, archive);
  await gateway.close();
  const again = await openGateway(context, { folder, now: () => madeAt });
  assert.ok(!again.logged.some(({ message }) => message.includes("migrated")), "only once");
});

const commands = [["sessions", "list"], ["sessions", "export"], ["sessions", "delete", "--user", "user-0"], ["doctor"]];

for (const command of [...commands, ["sessions", "import", "archive.jsonl"], ["chat", "hello"]]) {
  test(`\`portico ${command.join(" ")}\` refuses a file of layout 1, says what to do, and leaves it as it is`, async (context) => {
    const folder = makeOld(context);
    writeConfig(folder, toConfig({ gateway: { adapters: { echo: { type: "echo" } } } }));
    const archiveFile = new DatabaseSync(databaseIn(folder));
    archiveFile.exec("PRAGMA journal_mode = WAL");
    archiveFile.close();
    const before = readFileSync(databaseIn(folder));
    const { code, stdout, stderr } = await runProgram(context, folder, ...command).ended;
    assert.equal(code, 1, stdout + stderr);
    if (command[1] !== "import")
      assert.match(stdout + stderr, /has layout 1, and this release reads layout \d+\..*`portico start` migrates it/);
    assert.ok(readFileSync(databaseIn(folder)).equals(before));
  });
}
