/** The pages are whole: links resolve, what they name exists, and what must be on them is. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError, makeFolder, openPortico } from "../harness/house.ts";
import { root, runProgramIn } from "../harness/program.ts";
import { blocksOf, headingsOf, linksOf, pages, readPage } from "./pages.ts";

const manifest = JSON.parse(readPage("package.json")) as {
  readonly files: readonly string[];
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
};
const text = pages.map(readPage).join("\n");

test("every link between pages resolves", () => {
  const links = pages.flatMap((page) => linksOf(page));
  assert.ok(links.length > 20);
  const broken = links.filter(({ file, heading }) => {
    if (!existsSync(join(root, file))) return true;
    return heading !== undefined && !headingsOf(file).includes(heading);
  });
  assert.deepEqual(broken, []);
});

test("the index links to every page", () => {
  const listed = new Set(linksOf("docs/README.md").map(({ file }) => file));
  const own = pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  assert.deepEqual(
    own.filter((page) => !listed.has(page)),
    [],
  );
});

test("the package contains every page that one of its pages links to", () => {
  const brought = ["README.md", "LICENSE", ...manifest.files];
  const isBrought = (file: string) => brought.some((each) => file === each || file.startsWith(`${each}/`));
  const links = pages.filter(isBrought).flatMap(linksOf);
  assert.deepEqual(
    links.filter(({ file }) => !isBrought(file)),
    [],
  );
});

test("every script that a page names exists", () => {
  const named = pages.flatMap((page) =>
    [...readPage(page).matchAll(/\bnpm run (?:--silent )?([\w:]+)/g)].map(([, name = ""]) => ({ page, name })),
  );
  assert.ok(named.length > 3);
  assert.deepEqual(
    named.filter(({ name }) => !(name in manifest.scripts)),
    [],
  );
});

test("every dependency has its reason, and no other package has one", () => {
  const named = [...readPage("docs/dependencies.md").matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
  const all = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
  assert.deepEqual(named.toSorted(), all.toSorted());
});

test("the lock file lets every tool be installed, whatever Node the machine has", () => {
  const { packages } = JSON.parse(readPage("package-lock.json")) as {
    readonly packages: Readonly<Record<string, { readonly optional?: true; readonly engines?: { node: string } }>>;
  };
  // npm leaves an optional package out if its Node is too old: npm 10 runs on Node 18, the tools on their own Node.
  const demanding = Object.entries(packages).filter(
    ([, { optional, engines }]) => optional && engines !== undefined && !/^>=1[0-8]\b/.test(engines.node),
  );
  assert.deepEqual(demanding, [], "remove these engines from package-lock.json");
});

test("every route is on a page", () => {
  const routes = [
    "/chat/completions",
    "/models/{id}",
    ...["", "/{id}", "/{id}/cancel", "/{id}/input_items", "/compact", "/input_tokens"].map((end) => `/responses${end}`),
    ...["", "/{id}", "/{id}/items", "/{id}/items/{item_id}"].map((end) => `/conversations${end}`),
  ].map((path) => `/v1${path}`);
  const all = [...routes, "/healthz", "/readyz", "/metrics", "/console"];
  assert.deepEqual(
    all.filter((path) => !text.includes(path)),
    [],
  );
});

const codes: Readonly<Record<string, readonly string[]>> = {
  "401 authentication_error": ["missing_api_key", "invalid_api_key"],
  "403 permission_error": ["endpoint_not_allowed"],
  "404 invalid_request_error": ["endpoint_disabled", "unknown_url", "not_found"],
  "409 invalid_request_error": ["idempotency_conflict"],
  "429 rate_limit_error": ["rate_limit_exceeded", "session_busy", "too_many_failures"],
  "500 server_error": ["internal_error"],
  "502 api_error": ["adapter_error", "adapter_refused", "adapter_protocol"],
  "503 api_error": ["overloaded", "draining", "store_unavailable"],
  "504 api_error": ["adapter_timeout"],
  "400 invalid_request_error": ["previous_response_not_found"],
};

test("every error code is on the page of errors, with its status and type, and once", () => {
  const rows = [...readPage("docs/errors.md").matchAll(/^\| `(\w+)` +\| (\d+) +\| `(\w+)`/gm)];
  const found = new Map(rows.map(([, code = "", status, type]) => [code, `${status} ${type}`]));
  assert.equal(found.size, rows.length);
  for (const [kind, named] of Object.entries(codes)) {
    for (const code of named) assert.equal(found.get(code), kind, code);
  }
});

const keys = {
  "gateway.auth": ["token"],
  "gateway.http": [
    "bind",
    "port",
    "auth_token",
    "endpoints",
    "console",
    "websocket",
    "expose_reasoning",
    "trusted_proxies",
  ],
  "gateway.http.endpoints": ["compat_chat", "compat_responses"],
  "gateway.http.cors": ["origins"],
  "gateway.http.tokens": ["name", "token", "sha256", "expires_at", "endpoints", "models", "history", "limits"],
  "gateway.http.limits": [
    "max_body_bytes",
    "max_concurrent_turns",
    "max_queued_per_thread",
    "requests_per_minute",
    "burst",
    "heartbeat_ms",
    "stalled_client_timeout_ms",
    "drain_timeout_ms",
  ],
  "gateway.adapters": [
    "type",
    "model",
    "models",
    "context_window",
    "fallback",
    "base_url",
    "api_key",
    "wire",
    "argv",
    "path",
  ],
  "gateway.sessions": [
    "store",
    "hints",
    "history",
    "ttl",
    "max_turns_per_thread",
    "max_sessions_per_owner",
    "idempotency_ttl",
    "max_background_turns",
  ],
  gateway: ["default_adapter", "models", "data_dir", "workers"],
};
for (const [under, named] of Object.entries(keys)) {
  test(`the keys under ${under} are on the page of the configuration`, () => {
    const page = readPage("docs/configuration.md");
    assert.deepEqual(
      named.filter((key) => !new RegExp(`\`[\\w.\\[\\]<>]*\\b${key}\\b`).test(page)),
      [],
    );
  });
}

/** A part of the JSON Schema that `portico schema` prints. */
interface Schema {
  readonly type?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | false;
  readonly anyOf?: readonly Schema[];
}

/** The paths of all keys, as the page writes them, with their defaults. */
function* keysIn(schema: Schema, path = ""): Generator<readonly [path: string, usual: unknown]> {
  const { type, properties, items, additionalProperties: each, anyOf } = schema;
  if (anyOf !== undefined) for (const one of anyOf) yield* keysIn(one, path);
  else if (type === "object" && properties !== undefined) {
    for (const [key, own] of Object.entries(properties)) yield* keysIn(own, path === "" ? key : `${path}.${key}`);
  } else if (items?.properties !== undefined) {
    yield [`${path}[]`, schema.default];
    yield* keysIn({ type: "object", properties: items.properties }, `${path}[]`);
  } else {
    yield [path, schema.default];
    if (each !== undefined && each !== false && each.anyOf !== undefined) yield* keysIn(each, `${path}.<name>`);
  }
}

test("the page of the configuration has every key with its default, and no other key", async (context) => {
  const { stdout } = await runProgramIn(context, makeFolder(context), {}, "schema").ended;
  const found = new Map(keysIn(JSON.parse(stdout) as Schema));
  const rows = [...readPage("docs/configuration.md").matchAll(/^\| `([\w$.[\]<>]+)` +\| +(.*?) +\|/gm)];
  assert.deepEqual([...new Set(rows.map(([, key]) => key))].toSorted(), [...found.keys()].toSorted());
  for (const [, key = "", shown = ""] of rows) {
    // What has no default of its own is in words there.
    const usual = [found.get(key) ?? []].flat().filter((word) => typeof word !== "object");
    if (usual.length > 0) assert.equal(shown, usual.map((word) => `\`${String(word)}\``).join(", "), key);
  }
});

/** Every configuration on a page, whole or a part of one. */
const configurations = pages.flatMap((page) =>
  blocksOf(page)
    .filter(({ kind, text }) => kind === "json" && text.startsWith("{") && text.includes('"gateway"'))
    .map(({ text }, index) => ({ page, text, index })),
);

test("every configuration on a page is one that the gateway reads", async (context) => {
  assert.ok(configurations.length >= 8, `${configurations.length} configurations`);
  const folder = makeFolder(context);
  for (const { page, text } of configurations) {
    const { gateway } = JSON.parse(text) as { readonly gateway: object };
    // Nothing is opened, because there is one problem in any case.
    await assert.rejects(
      openPortico({ gateway: { ...gateway, planted: 1 } } as never, { folder, env: {} }),
      (thrown) => {
        assert.ok(thrown instanceof ConfigError);
        const wrong = thrown.problems.filter(({ path, message }) => {
          // What a part leaves out, and what is on the reader's machine.
          return (
            path !== "gateway.planted" && !/which is not set|no token|missing|cannot be read|ENOENT/i.test(message)
          );
        });
        assert.deepEqual(wrong, [], `${page}: ${text}`);
        return true;
      },
    );
  }
});
