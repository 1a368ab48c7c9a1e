/** One file under several names: a symbolic link leads to the same store and its lock, a second hard link is refused. */
import assert from "node:assert/strict";
import { existsSync, linkSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { tellWell } from "../../harness/client.ts";
import { findFreePort, makeFolder, openGateway } from "../../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../../harness/program.ts";

const more = { user: "ann" };

interface Names {
  readonly folder: string;
  /** Where the file is, or will be. */
  readonly file: string;
  readonly link: string;
}

/** Makes a data folder beside a folder for the store, and a second name for the store that is in it. */
function makeNames(context: TestContext, make: (names: Names) => void, link = "link.db"): Names {
  const folder = makeFolder(context);
  mkdirSync(join(folder, "data"));
  const names = { folder, file: join(folder, "data", "turns.db"), link: join(folder, link) };
  make(names);
  return names;
}

const open = (context: TestContext, file: string) =>
  openGateway(context, { folder: makeFolder(context), gateway: { sessions: { store: `sqlite:${file}` } } });

const symbolic: Record<string, (context: TestContext) => Names> = {
  "a symbolic link": (context) => makeNames(context, ({ file, link }) => symlinkSync(file, link)),
  "a relative symbolic link": (context) => makeNames(context, ({ link }) => symlinkSync("data/turns.db", link)),
  "a symbolic link to its folder": (context) =>
    makeNames(context, ({ folder }) => symlinkSync("data", join(folder, "linked")), "linked/turns.db"),
  "a symbolic link to a symbolic link": (context) =>
    makeNames(context, ({ folder, file, link }) => {
      symlinkSync(file, join(folder, "middle.db"));
      symlinkSync("middle.db", link);
    }),
};

for (const [what, make] of Object.entries(symbolic)) {
  for (const isFirst of [true, false]) {
    const order = isFirst ? "opened before the file exists" : "opened second";
    test(`a file and ${what}, ${order}, belong to one gateway`, async (context) => {
      const { file, link } = make(context);
      const [one, other] = isFirst ? [link, file] : [file, link];
      const first = await open(context, one);
      await tellWell(first.address, { on: "chat", say: "one", more });
      assert.ok(existsSync(file));
      await assert.rejects(open(context, other), ({ message }: Error) => {
        assert.match(message, /in use by another gateway/);
        assert.ok(message.includes(`The session store ${other} `), message);
        return true;
      });
      await tellWell(first.address, { on: "chat", say: "two", more });
      await first.close();
      const next = await open(context, other);
      const heard = await tellWell(next.address, { on: "chat", say: "three", more });
      assert.equal(heard.headers.get("x-portico-context"), "5 items");
    });
  }
}

test("the command line knows the gateway that uses a file by another symbolic link", async (context) => {
  const { folder, file, link } = symbolic["a symbolic link"]!(context);
  const http = { port: await findFreePort() };
  const adapters = { echo: { type: "echo" } };
  const config = (store: string) => toConfig({ http, gateway: { adapters, sessions: { store: `sqlite:${store}` } } });
  const program = runProgram(context, folder, "start", "--config", writeConfig(folder, config(file)));
  await program.address();
  writeConfig(folder, config(link));
  const { stdout } = await runProgram(context, folder, "doctor").ended;
  assert.match(stdout, /^ok +gateway: a gateway answers at/m);
});

test("a file with a second hard link is refused by a gateway and by the command line, which say what to do", async (context) => {
  const { folder, file, link } = makeNames(context, () => {});
  const first = await open(context, file);
  await tellWell(first.address, { on: "chat", say: "one", more });
  linkSync(file, link);
  const refusal = /has 2 names \(hard links\).*Keep the name/s;
  await assert.rejects(open(context, link), ({ message }: Error) => {
    assert.match(message, refusal);
    assert.ok(message.includes(`The session store ${link} `), message);
    return true;
  });
  writeConfig(folder, toConfig({ gateway: { sessions: { store: `sqlite:${link}` } } }));
  const { code, stderr } = await runProgram(context, folder, "sessions", "list").ended;
  assert.equal(code, 1);
  assert.match(stderr, refusal);

  await tellWell(first.address, { on: "chat", say: "two", more });
  await first.close();
  await assert.rejects(open(context, file), refusal);
  rmSync(link);
  const next = await open(context, file);
  const heard = await tellWell(next.address, { on: "chat", say: "three", more });
  assert.equal(heard.headers.get("x-portico-context"), "5 items", "the gateway that ran went on");
});
