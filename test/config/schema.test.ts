/** `portico schema`: the keys of the config file, these and no others, for editors. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeFolder } from "../harness/house.ts";
import { runProgram } from "../harness/program.ts";
import { problemsOf, withHttp } from "./problems.ts";

interface Form {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Form>>;
  readonly patternProperties?: Readonly<Record<string, Form>>;
  readonly additionalProperties?: Form | boolean;
  readonly items?: Form;
  readonly anyOf?: readonly Form[];
  readonly oneOf?: readonly Form[];
  readonly allOf?: readonly Form[];
}

const limits = ["requests_per_minute", "burst", "max_concurrent_turns"];

/** Every key that is documented; of `cors` and the like only what is in it. */
const documented: readonly string[] = [
  "auth.token",
  ...["bind", "port", "socket_mode", "auth_token", "endpoints.compat_chat", "endpoints.compat_responses"].map(inHttp),
  ...["console", "websocket", "expose_reasoning", "trusted_proxies", "cors.origins"].map(inHttp),
  ...["name", "token", "sha256", "expires_at", "endpoints", "models", "history"].map((key) =>
    inHttp(`tokens[].${key}`),
  ),
  ...limits.map((key) => inHttp(`tokens[].limits.${key}`)),
  ...limits.map((key) => inHttp(`limits.${key}`)),
  ...["max_body_bytes", "max_queued_per_thread", "heartbeat_ms", "stalled_client_timeout_ms", "drain_timeout_ms"].map(
    (key) => inHttp(`limits.${key}`),
  ),
  ...["type", "model", "models", "context_window", "fallback", "retries"].map(inAdapter),
  ...["first_byte_timeout_ms", "idle_timeout_ms", "total_timeout_ms"].map(inAdapter),
  ...["base_url", "api_key", "headers", "wire", "proxy", "send_reasoning", "custom_tools"].map(inAdapter),
  ...["max_tokens_field", "developer_role"].map(inAdapter),
  ...["package", "provider", "options", "provider_options", "fetch_media"].map(inAdapter),
  ...["argv", "cwd", "env", "set_env", "input", "output", "path", "delay_ms"].map(inAdapter),
  "default_adapter",
  "models",
  "data_dir",
  "log.level",
  "workers",
  ...["store", "hints", "history", "ttl", "max_turns_per_thread", "max_sessions_per_owner"].map(inSessions),
  ...["idempotency_ttl", "max_background_turns"].map(inSessions),
];

function inHttp(key: string): string {
  return `http.${key}`;
}

function inAdapter(key: string): string {
  return `adapters.<name>.${key}`;
}

function inSessions(key: string): string {
  return `sessions.${key}`;
}

/** Every key with its path as the documentation writes it. A key that holds others is not among them. */
function* keysOf(form: Form, path = ""): Generator<readonly [path: string, form: Form]> {
  const { properties = {}, patternProperties = {}, additionalProperties, items, anyOf, oneOf, allOf } = form;
  // A reference to a file is a value, not a section.
  if (Object.keys(properties).join() === "file") return;
  const named = typeof additionalProperties === "object" ? [additionalProperties] : Object.values(patternProperties);
  for (const [key, inner] of Object.entries(properties)) {
    if (key.startsWith("$")) continue;
    const place = path === "" ? key : `${path}.${key}`;
    const within = [...keysOf(inner, place)];
    if (within.length === 0) yield [place, inner];
    else yield* within;
  }
  for (const each of named) yield* keysOf(each, `${path}.<name>`);
  if (items !== undefined) yield* keysOf(items, `${path}[]`);
  for (const each of [...(anyOf ?? []), ...(oneOf ?? []), ...(allOf ?? [])]) yield* keysOf(each, path);
}

test("the schema is for editors, and has every documented key, no other, and what each means", async (context) => {
  const { code, stdout } = await runProgram(context, makeFolder(context), "schema").ended;
  assert.equal(code, 0);
  const schema = JSON.parse(stdout) as Form & { readonly $schema: string };
  assert.match(schema.$schema, /^https?:\/\/json-schema\.org\//);
  const keys = [...keysOf(schema)];
  const silent = keys.filter(([, { description }]) => description === undefined);
  assert.deepEqual(
    silent.map(([path]) => path),
    [],
  );
  // What is asked of fetched media is a matter of that adapter.
  const found = new Set(keys.map(([path]) => path.replace(/^gateway\./, "").replace(/(?<=fetch_media)\..*/, "")));
  assert.deepEqual([...found].toSorted(), [...documented].toSorted());
});

test("what is no documented key is refused: earlier ones are constants now", async () => {
  const adapters = { main: { type: "echo", retry: { times: 1 }, breaker: { failures: 1 } } };
  const limits = { max_json_depth: 64, max_messages: 4096, max_auth_failures_per_minute: 10 };
  const sessions = { prune_interval_ms: 1000, max_bytes_per_thread: 1_000_000 };
  const problems = await problemsOf(withHttp({ limits, websocket: { enabled: true } }, { adapters, sessions }));
  assert.deepEqual(
    problems.map(({ path }) => path).toSorted(),
    [
      "adapters.main.breaker",
      "adapters.main.retry",
      "http.limits.max_auth_failures_per_minute",
      "http.limits.max_json_depth",
      "http.limits.max_messages",
      "http.websocket",
      "sessions.max_bytes_per_thread",
      "sessions.prune_interval_ms",
    ].map((key) => `gateway.${key}`),
  );
});
