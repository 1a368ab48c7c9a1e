/**
 * Values that adapters send as headers, and tokens that callers send in headers: invalid ones are reported at the
 * start.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { detectAdapter } from "../../src/config/detect.ts";
import { ConfigError } from "../../src/config/problem.ts";
import { load, longToken, problemsOf, withHttp } from "./surroundings.ts";

const lineEnd = 'ends with a newline; remove it, or write {"file": "…"}, which ignores it';
const around = "has whitespace around it; remove it";
const within = "contains a newline or another character that no header can carry; write it on one line, in Latin-1";
const noName = "not a valid header name; allowed: letters, digits and !#$%&'*+-.^_`|~";
const ofTheConnection = "belongs to the connection itself, which the gateway manages; leave it out";

const wrong: readonly (readonly [options: object, place: string, fault: string])[] = [
  [{ api_key: "sk-secret\n" }, "api_key", lineEnd],
  [{ api_key: "${KEY}" }, "api_key", lineEnd],
  [{ api_key: " sk-secret" }, "api_key", around],
  [{ api_key: "sk-\nsecret" }, "api_key", within],
  [{ api_key: "sk-secret…" }, "api_key", within],
  [{ organization: "org-secret\r\n" }, "organization", lineEnd],
  [{ project: "proj\0secret" }, "project", within],
  [{ headers: { "x-team": "secret\n" } }, "headers.x-team", lineEnd],
  [{ headers: { "x team": "secret" } }, 'headers["x team"]', noName],
  [{ headers: { "": "secret" } }, 'headers[""]', noName],
  [{ headers: { "Transfer-Encoding": "secret" } }, "headers.Transfer-Encoding", ofTheConnection],
];

for (const [options, place, fault] of wrong) {
  test(`An openai adapter with ${JSON.stringify(options)} is refused, and its secret is not shown.`, async () => {
    const file = withHttp({}, { adapters: { main: { type: "openai", ...options } } });
    const problems = await problemsOf(file, { adapterOptions, env: { KEY: "sk-secret\r\n" } });
    assert.deepEqual(problems, [{ path: `gateway.adapters.main.${place}`, message: fault }]);
  });
}

test("Headers and the key in the options of a provider's package are checked by the same rules.", async () => {
  const options = { apiKey: "sk-secret\n", headers: { "x-a": "b\n" }, credentials: { privateKey: "a\nb\n" } };
  const file = withHttp({}, { adapters: { main: { type: "ai-sdk", package: "p", options } } });
  assert.deepEqual(await problemsOf(file, { adapterOptions }), [
    { path: "gateway.adapters.main.options.apiKey", message: lineEnd },
    { path: "gateway.adapters.main.options.headers.x-a", message: lineEnd },
  ]);
});

test("A list that a module calls headers has no names, so it is the module's own matter.", async () => {
  const main = { type: "module", path: "mine.mts", options: { headers: ["名前", "値 "] } };
  assert.deepEqual(await problemsOf(withHttp({}, { adapters: { main } }), { adapterOptions }), []);
});

test("Valid header values are accepted unchanged, an empty key too.", async () => {
  const main = { type: "openai", api_key: "", organization: "größe 1", headers: { "X-Team_1": "a, b; c=\t1" } };
  assert.deepEqual(await problemsOf(withHttp({}, { adapters: { main } }), { adapterOptions }), []);
});

test("A token that ends with a line break could never be sent, so it is reported at the start.", async () => {
  const tokens = [{ name: "app", token: `${longToken}-app\n` }];
  const file = { gateway: { auth: { token: "${TOKEN}" }, http: { auth_token: ` ${longToken}-http`, tokens } } };
  assert.deepEqual(await problemsOf(file, { env: { TOKEN: `${longToken}\n` } }), [
    { path: "gateway.auth.token", message: lineEnd },
    { path: "gateway.http.auth_token", message: around },
    { path: "gateway.http.tokens[0].token", message: lineEnd },
  ]);
});

test("White space around a secret in a file is removed.", async () => {
  const main = { type: "openai", api_key: { file: "/run/key" } };
  const { config } = await load(withHttp({ auth_token: { file: "/run/token" } }, { adapters: { main } }), {
    adapterOptions,
    readText: (file) => (file === "/run/key" ? "\uFEFFsk-upstream \r\n\r\n" : `${longToken}\n\n`),
  });
  assert.equal(config.http.authToken, longToken);
  assert.equal(config.adapters["main"]?.options["api_key"], "sk-upstream");
});

test("White space around a key in the environment is removed.", async () => {
  const probe = async () => undefined;
  const found = await detectAdapter({ env: { OPENAI_API_KEY: " \n", ANTHROPIC_API_KEY: "sk-b\n" }, probe });
  assert.equal(found.adapter["api_key"], "sk-b");
  await assert.rejects(detectAdapter({ env: { OPENAI_API_KEY: "sk-…" }, probe }), (thrown) => {
    assert.ok(thrown instanceof ConfigError);
    assert.deepEqual(thrown.problems, [{ path: "OPENAI_API_KEY", message: `(environment) ${within}` }]);
    return true;
  });
});
