/** Monitoring a gateway: with which tokens, independent of the callers' rate, and with which lines of the log. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { GatewayError } from "../src/core/errors.ts";
import type { Turn } from "../src/core/turn.ts";
import { createMetrics } from "../src/http/metrics.ts";
import { openPortico, type PorticoSettings } from "../src/index.ts";
import { createObserver } from "../src/observing.ts";
import { makeFolder } from "./gateway.ts";

const tokens = {
  general: "sk-general-0123456789",
  app: "sk-app-0123456789abcdef",
  scraper: "sk-scraper-0123456789",
};
type Who = keyof typeof tokens;

async function open(context: TestContext, gateway: PorticoSettings["gateway"] = {}) {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = { info: (fields: object) => void lines.push({ ...fields }), error: () => {} };
  const settings: PorticoSettings = {
    gateway: {
      auth: { token: tokens.general },
      adapters: { echo: { type: "echo" } },
      sessions: { store: "memory:" },
      ...gateway,
      http: {
        port: 0,
        auth_token: tokens.app,
        tokens: [{ name: "scraper", token: tokens.scraper, endpoints: ["metrics"] }],
        endpoints: { compat_chat: true },
        ...gateway?.http,
      },
    },
  };
  const portico = await openPortico(settings, { folder: makeFolder(context), env: {}, log });
  context.after(() => portico.close());
  const get = async (path: string, who?: Who, method = "GET") => {
    const headers = new Headers(who === undefined ? {} : { authorization: `Bearer ${tokens[who]}` });
    const answer = await fetch(`${portico.address}${path}`, { method, headers });
    return { status: answer.status, text: await answer.text() };
  };
  return { get, lines };
}

test("operator requests and callers' requests do not count against each other's rate", async (context) => {
  const { get } = await open(context, { http: { limits: { requests_per_minute: 1, burst: 1 } } });
  for (const path of ["/metrics", "/operator/sessions", "/metrics"]) {
    assert.equal((await get(path, "general")).status, 200, path);
  }
  assert.equal((await get("/v1/models", "app")).status, 200);
  assert.equal((await get("/v1/models", "app")).status, 429);
  assert.equal((await get("/metrics", "general")).status, 200);
  assert.equal((await get("/metrics", "scraper")).status, 200);
  assert.equal((await get("/metrics", "scraper")).status, 200);
});

test("a token without access to the metrics is rate-limited when it tries", async (context) => {
  const { get } = await open(context, { http: { limits: { requests_per_minute: 1, burst: 1 } } });
  assert.equal((await get("/metrics", "app")).status, 403);
  assert.equal((await get("/metrics", "app")).status, 429);
});

test("a token may give access to the metrics only", async (context) => {
  const { get } = await open(context);
  assert.match((await get("/metrics", "scraper")).text, /^# HELP/);
  for (const path of ["/operator/sessions", "/operator/export", "/v1/models"]) {
    assert.equal((await get(path, "scraper")).status, 403, path);
  }
});

test("the error for a token without access says which one has it", async (context) => {
  const { get } = await open(context);
  assert.match((await get("/operator/sessions", "app")).text, /send the general token, gateway\.auth\.token\./);
  assert.match(
    (await get("/v1/models", "general")).text,
    /Send gateway\.http\.auth_token \(gateway\.auth\.token if that is not set\), or a token from gateway\.http\.tokens/,
  );
});

const misspelled = [
  ["DELETE", "/operator/sessions?user=ann&onwer=notes", "user, hint, owner"],
  ["GET", "/operator/sessions?ouside=true", "user, hint, owner, after, limit, outside"],
  ["GET", "/operator/export?sesion=conv_1", "user, hint, owner, session"],
  ["DELETE", "/operator/sessions/conv_1?owner=ann", undefined],
  ["POST", "/operator/prune?owner=ann", undefined],
  ["POST", "/operator/import?dry_run=true", undefined],
] as const;

for (const [method, path, known] of misspelled) {
  test(`an unknown parameter is refused: ${method} ${path}`, async (context) => {
    const { get } = await open(context);
    const { status, text } = await get(path, "general", method);
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    assert.deepEqual([status, error.code], [400, "unsupported_parameter"]);
    assert.match(
      error.message,
      known === undefined ? /none is accepted here\.$/ : new RegExp(`those accepted here are ${known}\\.$`),
    );
  });
}

test("a log line names a caller without a token by its address, and successful probes are not logged", async (context) => {
  const { get, lines } = await open(context);
  for (const path of ["/healthz", "/readyz"]) assert.equal((await get(path)).status, 200);
  assert.equal((await get("/v1/models")).status, 401);
  assert.equal((await get("/v1/models", "app")).status, 200);
  while (lines.length < 2) await new Promise(setImmediate);
  assert.deepEqual(
    lines.map(({ path, status, address, owner }) => ({ path, status, address, owner })),
    [
      { path: "/v1/models", status: 401, address: "127.0.0.1", owner: undefined },
      { path: "/v1/models", status: 200, address: undefined, owner: "default" },
    ],
  );
});

test("a fallback is counted and logged, and an attempt with a span is counted too", () => {
  const told: string[] = [];
  const note = (what: string) => () => void told.push(what);
  const metrics = { ...createMetrics(), fellBack: note("counted"), asked: () => ({ ended: note("attempt counted") }) };
  const spans = { asked: () => ({ ended: note("span ended") }), begin: () => assert.fail("no request begins") };
  const observer = createObserver({ info() {}, error: note("logged") }, metrics, spans, note("turn logged"));
  observer.fellBack("main", new GatewayError("adapter_error", "It is down."));
  observer.asked("main", {} as Turn).ended({ outcome: "completed" });
  assert.deepEqual(told, ["counted", "logged", "attempt counted", "span ended"]);
});
