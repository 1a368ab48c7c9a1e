/** The schema, and the page that documents it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { adapterOptions } from "../../src/adapters/index.ts";
import { toJsonSchema } from "../../src/config/editor.ts";
import { problemsOf, withHttp } from "./surroundings.ts";

interface Form {
  readonly description?: string;
  readonly default?: unknown;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Form>>;
  readonly patternProperties?: Readonly<Record<string, { readonly anyOf?: readonly Form[] }>>;
  readonly items?: Form;
  readonly anyOf?: readonly Form[];
}

const schema = toJsonSchema(adapterOptions) as Form & Readonly<Record<string, unknown>>;

/** Every key with its path as the documentation writes it, and its schema. */
function* keysOf(form: Form, path: string): Generator<readonly [path: string, form: Form]> {
  for (const [key, inner] of Object.entries(form.properties ?? {})) {
    const place = path === "" ? key : `${path}.${key}`;
    yield [inner.items?.properties === undefined ? place : `${place}[]`, inner];
    yield* keysOf(inner, place);
    if (inner.items !== undefined) yield* keysOf(inner.items, `${place}[]`);
    if (key !== "adapters") continue;
    for (const adapter of Object.values(inner.patternProperties ?? {}).flatMap(({ anyOf = [] }) => anyOf)) {
      yield* keysOf(adapter, `${place}.<name>`);
    }
  }
}

const keys = [...keysOf(schema, "")];

test("The schema is a JSON Schema of draft 2020-12 with an id and a title.", () => {
  assert.equal(schema.$schema, "https://json-schema.org/draft/2020-12/schema");
  assert.equal(schema.$id, "urn:portico:configuration");
  assert.equal(schema.title, "Portico configuration");
});

test("Every key of the file has a description.", () => {
  assert.ok(keys.length > 40);
  assert.deepEqual(
    keys.filter(([, form]) => form.description === undefined).map(([path]) => path),
    [],
  );
});

test("Every pattern has a title that describes in words what matches it.", () => {
  const untitled: unknown[] = [];
  JSON.stringify(schema, (_, form) => {
    if (typeof form?.pattern === "string" && form.title === undefined) untitled.push(form);
    return form;
  });
  assert.deepEqual(untitled, []);
});

test("An invalid URL of an adapter is refused with an example of a valid one.", async () => {
  const main = { type: "openai", base_url: "api.example.com/v1", proxy: "proxy.example.com" };
  assert.deepEqual(await problemsOf(withHttp({}, { adapters: { main } }), { adapterOptions }), [
    {
      path: "gateway.adapters.main.base_url",
      message:
        'found the string "api.example.com/v1"; allowed: a URL like "https://api.example.com/v1", without user or password and without /chat/completions or /responses at its end, or "unix:/path"',
    },
    {
      path: "gateway.adapters.main.proxy",
      message: 'found the string "proxy.example.com"; allowed: a URL like "http://proxy.example.com:3128" or false',
    },
  ]);
});

test("The base URL of an adapter must not contain the path that the gateway adds to it.", async () => {
  const problems = async (base_url: string) => {
    const adapters = { main: { type: "openai", base_url } };
    return (await problemsOf(withHttp({}, { adapters }), { adapterOptions })).map(({ path }) => path);
  };
  const refused = [
    "https://h/v1/chat/completions",
    "https://h/v1/responses/",
    "https://h/chat/completions?api-version=1",
  ];
  for (const url of [...refused, "unix:/run/model.sock:/v1/chat/completions"]) {
    assert.deepEqual(await problems(url), ["gateway.adapters.main.base_url"], url);
  }
  for (const url of ["https://h/responses/v1", "https://h/v1?next=/responses", "unix:/run/responses"]) {
    assert.deepEqual(await problems(url), [], url);
  }
});

test("No key with a default is required.", () => {
  const demanded = keys.flatMap(([path, form]) =>
    [...(form.required ?? []), ...(form.items?.required ?? [])].map((key) => `${path}.${key}`),
  );
  assert.deepEqual(
    demanded.filter((path) => !path.endsWith(".file")),
    ["gateway.http.tokens[].name"],
  );
});

test("The schema allows a secret to be a string or a file.", () => {
  const secrets = keys.filter(([, form]) => form.anyOf?.some(({ properties }) => properties?.file !== undefined));
  assert.deepEqual(
    secrets.map(([path]) => path),
    ["gateway.auth.token", "gateway.http.auth_token", "gateway.http.tokens[].token", "gateway.adapters.<name>.api_key"],
  );
});

test("Every key of the schema is in docs/configuration.md, with its default.", () => {
  const page = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
  const rows = new Map<string, string | undefined>();
  for (const line of page.split("\n")) {
    const [, key, , fallback] = line.split("|").map((cell) => cell.trim());
    if (key?.startsWith("`")) rows.set(key, fallback);
  }
  const missing = keys.filter(([path, form]) => {
    if (form.properties !== undefined) return false;
    const isPlain = form.default !== undefined && typeof form.default !== "object";
    const key = `\`${path}\``;
    return !rows.has(key) || (isPlain && rows.get(key) !== `\`${String(form.default)}\``);
  });
  assert.deepEqual(
    missing.map(([path, form]) => [path, form.default]),
    [],
  );
});

test("Every limit is in docs/errors.md with its key, its default, and an existing code.", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const [, table = ""] = /^## Every limit$(.*?)^## /ms.exec(page) ?? [];
  const codes = new Set([...page.matchAll(/^\| `(\w+)` +\| \d{3} /gm)].map(([, code]) => code));
  const rows = [...table.matchAll(/^\| `([^`]+)` +\| (\w+) +\| (.*?) +\|$/gm)].map(
    ([, key, fallback, beyond = ""]) => ({
      key: `gateway.${key}`,
      fallback,
      code: /^`(\w+)`/.exec(beyond)?.[1],
    }),
  );
  for (const { key, fallback, code } of rows) {
    const forms = keys.filter(([path]) => path === key).map(([, form]) => String(form.default ?? "none"));
    assert.ok(forms.length > 0, `${key} does not exist`);
    assert.equal(forms[0], fallback, key);
    assert.ok(code === undefined || codes.has(code), `${key}: the code ${code} does not exist`);
  }
  const listed = new Set(rows.map(({ key }) => key));
  const limits = keys
    .map(([path]) => path)
    .filter((path) => /\.(http\.limits|http\.websocket|sessions)\.max_/.test(path));
  assert.deepEqual(
    limits.filter((path) => !listed.has(path)),
    [],
  );
});

test("The defaults in docs/operating.md's table of memory are those of the schema.", () => {
  const page = readFileSync(new URL("../../docs/operating.md", import.meta.url), "utf8");
  const [, table = ""] = /^### How much memory it takes$(.*?)^### /ms.exec(page) ?? [];
  const rows = [...table.matchAll(/^\|[^|]+\| `([^`]+)` +\| (\d+) MiB/gm)];
  assert.equal(rows.length, 7);
  for (const [, key, mebibytes] of rows) {
    const [, form] = keys.find(([path]) => path === `gateway.${key}`) ?? [];
    assert.equal(form?.default, Number(mebibytes) * 1024 * 1024, key);
  }
});
