/** Values that stand elsewhere, in the environment and in files of their own, and the paths of the config file. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { tell, tellWell } from "../harness/client.ts";
import { makeFolder, openGateway, token } from "../harness/house.ts";
import { longToken, problemOf, problemsOf, withHttp } from "./problems.ts";

for (const [what, settings, path, ...said] of [
  ["a variable that is not set", withHttp({ auth_token: "${NO_SUCH}" }), "gateway.http.auth_token", /NO_SUCH/],
  ["a variable in the middle of a path", withHttp({}, { data_dir: "a/${NO_SUCH}/b" }), "gateway.data_dir", /NO_SUCH/],
  ["a name that every object knows", withHttp({}, { data_dir: "${constructor}" }), "gateway.data_dir", /constructor/],
  ["a variable without a name", withHttp({}, { data_dir: "${}" }), "gateway.data_dir", /\$\{\w+\}/],
  ["a bracket that is not closed", withHttp({}, { data_dir: "${PORT" }), "gateway.data_dir", /\$\{\w+\}/],
  ["a secret file that does not exist", withHttp({ auth_token: { file: "gone" } }), "gateway.http.auth_token", /gone/],
  ["a secret file without a path", withHttp({ auth_token: { file: 3 } }), "gateway.http.auth_token.file", /path/],
  ["a secret file with more keys", withHttp({ auth_token: { file: "a", mode: 1 } }), "gateway.http.auth_token.mode"],
  ["a file for what is no secret", withHttp({ bind: { file: "a" } }), "gateway.http.bind", /string/],
] as const) {
  test(`${what} is an error that names it`, async () => {
    const problem = await problemOf(settings, { PORT: "8600" });
    assert.ok(problem.startsWith(`${path}: `) && !problem.includes("\n"), problem);
    for (const each of said) assert.match(problem, each);
  });
}

test("a secret from an empty file is an error that names the file", async (context) => {
  const file = join(makeFolder(context), "secret");
  writeFileSync(file, " \n");
  const problem = await problemOf(withHttp({ auth_token: { file } }));
  assert.match(problem, /^gateway\.http\.auth_token: .*empty/);
  assert.ok(problem.includes(file));
});

test("a string may hold several variables, and $${ stands for ${ itself", async (context) => {
  const http = { auth_token: "${FIRST}-${SECOND}-$${FIRST}-0123" };
  const { address } = await openGateway(context, { http, env: { FIRST: "one", SECOND: "two" } });
  await tellWell(address, { on: "chat", say: "hi", token: "one-two-${FIRST}-0123" });
});

test("a secret may be in a file of its own, named from the config file's folder, whose line end does not count", async (context) => {
  const folder = makeFolder(context);
  mkdirSync(join(folder, "secrets"));
  writeFileSync(join(folder, "secrets/token"), `${longToken}-file\r\n\n`);
  const http = { auth_token: { file: "secrets/${NAME}" } };
  const { address } = await openGateway(context, { http, folder, env: { NAME: "token" } });
  await tellWell(address, { on: "chat", say: "hi", token: `${longToken}-file` });
  assert.equal((await tell(address, { on: "chat", say: "hi" })).status, 401);
});

test("the data folder and the store are found from the config file's folder", async (context) => {
  const folder = makeFolder(context);
  mkdirSync(join(folder, "config"));
  const gateway = { data_dir: "../data", sessions: { store: "sqlite:turns.db" } };
  const { address } = await openGateway(context, { gateway, folder: join(folder, "config") });
  await tellWell(address, { on: "responses", say: "hi", token });
  assert.ok(existsSync(join(folder, "config/turns.db")));
  assert.ok(!existsSync(join(folder, "config/.portico")));
});

test("without a name of its own, the store is in the data folder, and that is .portico beside the config file", async (context) => {
  const folder = makeFolder(context);
  const { address } = await openGateway(context, { folder });
  await tellWell(address, { on: "responses", say: "hi" });
  assert.ok(existsSync(join(folder, ".portico")));
});

test("no message shows a secret, whatever is wrong with it", async () => {
  const secret = "sk-very-secret";
  const problems = await problemsOf(
    {
      gateway: {
        auth: { token: [secret] },
        http: { auth_token: { value: secret }, port: "${SECRET}", bind: "${SECRET}", tokens: [{ token: secret }] },
        adapters: {
          a: { type: "openai", headers: { "x-key": [secret] }, api_key: { value: secret }, base_url: "${SECRET}" },
          b: { type: "command", argv: ["b"], set_env: { KEY: [secret] } },
        },
        default_adapter: "${SECRET}",
        sessions: { store: `mysql://me:${secret}@host` },
      },
    },
    { SECRET: secret },
  );
  assert.ok(problems.length >= 9, JSON.stringify(problems));
  assert.ok(!JSON.stringify(problems).includes(secret), JSON.stringify(problems));
});
