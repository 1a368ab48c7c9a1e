/** The metrics that Prometheus reads from the gateway. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as send } from "node:http";
import { suite, test, type TestContext } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import { readMetrics } from "../../src/console/prometheus.js";
import { summarise, totalOf } from "../../src/console/summary.js";
import { createMetrics, type MetricSources } from "../../src/http/metrics.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { open as endpoints, startGateway, token as forTurns } from "../gateway.ts";
import { authorization, createBox, say, toToken, token } from "../scripted.ts";
import { dial } from "./websocket-client.ts";

const operator = "sk-operator-0123456789";

/** Every sample by its name and labels, as written in the text. */
type Figures = ReadonlyMap<string, number>;

function toFigures(text: string): Figures {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}

async function read(address: string): Promise<string> {
  return (await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${operator}` } })).text();
}

/** How much each changed sample has grown. */
function growth(before: Figures, after: Figures): Readonly<Record<string, number>> {
  const grown = Array.from(after, ([name, value]) => [name, value - (before.get(name) ?? 0)] as const);
  return Object.fromEntries(grown.filter(([, by]) => by !== 0));
}

const box = (context: TestContext, ...[script, options]: Tail<Parameters<typeof createBox>>) =>
  createBox(context, script, {
    ...options,
    settings: { tokens: [toToken(token), toToken(operator, { opens: new Set(["operator"]) })] },
  });

type Tail<List extends readonly unknown[]> = List extends [unknown, ...infer Rest] ? Rest : never;

suite("the HTTP server", () => {
  test("counts requests, turns and circuit breakers, for the operator only", async (context) => {
    const address = await box(context, [say("hi")]).listen();
    const headers = { authorization, "content-type": "application/json" };
    const body = JSON.stringify({ model: "m", input: "hi" });
    for (let times = 0; times < 3; times++) {
      await (await fetch(`${address}/v1/responses`, { method: "POST", headers, body })).text();
    }
    for (const path of ["/nope", "/nope/again"]) await (await fetch(address + path, { headers })).text();
    assert.equal((await fetch(`${address}/metrics`, { headers })).status, 403);
    const answer = await fetch(`${address}/metrics`, { headers: { authorization: `Bearer ${operator}` } });
    assert.match(answer.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
    const text = await answer.text();
    assert.match(text, /^portico_requests_total\{path="\/v1\/responses",status="200"\} 3$/m);
    assert.match(text, /^portico_requests_total\{path="unknown",status="404"\} 2$/m);
    assert.match(text, /^portico_request_seconds_count\{path="\/v1\/responses",outcome="answered"\} 3$/m);
    assert.match(text, /^portico_request_seconds_sum\{path="\/v1\/responses",outcome="answered"\} 0\.\d+$/m);
    assert.match(text, /^portico_request_seconds_count\{path="\/v1\/responses",outcome="failed"\} 0$/m);
    assert.match(text, /^portico_request_seconds_count\{path="unknown",outcome="refused"\} 2$/m);
    assert.match(text, /^portico_turns_running 0$/m);
    assert.match(text, /^portico_store_ready 1$/m);
    assert.match(text, /^portico_adapter_breaker_state\{adapter="scripted",state="closed"\} 1$/m);
    assert.match(text, /^portico_adapter_breaker_state\{adapter="scripted",state="open"\} 0$/m);
    assert.match(text, /^portico_adapter_turns_total\{adapter="scripted",outcome="completed"\} 0$/m);
  });

  test("reports a store that is not ready", async (context) => {
    const full = new GatewayError("store_unavailable", "The disk is full.");
    const store = { ...createMemoryStore(), check: () => Promise.reject(full) };
    const address = await box(context, [say("hi")], { store }).listen();
    assert.match(await read(address), /^portico_store_ready 0$/m);
  });

  test("reports running, waiting and background turns and connections while they last", async (context) => {
    const going = Promise.withResolvers<void>();
    const address = await box(context, async function* () {
      yield say("so ");
      await going.promise;
      yield say("on");
    }).listen();
    const post = (body: object) =>
      fetch(`${address}/v1/responses`, {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: JSON.stringify({ model: "m", input: "hi", ...body }),
      }).then((response) => response.text());
    const gauges = async () => {
      const figures = toFigures(await read(address));
      const names = ["turns_running", "turns_waiting", "background_turns_running", "websocket_connections"];
      return names.map((name) => figures.get(`portico_${name}`));
    };
    assert.deepEqual(await gauges(), [0, 0, 0, 0]);
    await post({ background: true });
    const client = await dial(context, address);
    const answers = [1, 2, 3].map(() => post({ user: "u" }));
    while ((await gauges())[1] !== 2) await new Promise(setImmediate);
    assert.deepEqual(await gauges(), [3, 2, 1, 1]);
    going.resolve();
    await Promise.all(answers);
    client.socket.close();
    while ((await gauges()).some((count) => count !== 0)) await new Promise(setImmediate);
  });

  test("counts a WebSocket turn as a request, and the duration of its connection as no request's time", async (context) => {
    const address = await box(context, [say("hi")]).listen();
    const client = await dial(context, address);
    client.create({ input: "hi" });
    await client.answer();
    client.create({ input: "later", generate: false });
    await client.answer();
    client.socket.close();
    const path = 'path="/v1/responses"';
    for (;;) {
      const figures = toFigures(await read(address));
      if (!figures.has(`portico_requests_total{${path},status="101"}`)) continue;
      assert.equal(figures.get(`portico_requests_total{${path},status="200"}`), 2);
      assert.equal(figures.get(`portico_request_seconds_count{${path},outcome="answered"}`), 2);
      const firsts = figures.get(`portico_first_byte_seconds_count{${path},stream="true"}`);
      assert.equal(firsts, 1, "a prepared request has no first byte");
      return;
    }
  });
});

suite("a whole gateway", () => {
  const gateway = {
    auth: { token: operator },
    adapters: {
      main: { type: "echo", retry: { times: 1, base_ms: 1 }, fallback: ["spare"] },
      spare: { type: "echo", delay_ms: 1 },
    },
    default_adapter: "main",
    sessions: { store: "memory:" },
  };

  async function open(context: TestContext) {
    const { address } = await startGateway(context, gateway);
    const headers = { authorization: `Bearer ${forTurns}`, "content-type": "application/json" };
    let before = toFigures(await read(address));
    return {
      address,
      headers,
      /**
       * What has changed since the last call; the log line of an answer is written a moment after its caller has it.
       */
      async moved(isThere: (name: string) => boolean) {
        for (;;) {
          const after = toFigures(await read(address));
          const grown = growth(before, after);
          if (!Object.keys(grown).some(isThere)) continue;
          before = after;
          return Object.fromEntries(
            Object.entries(grown).filter(([name]) => !/^(process|nodejs)_|"\/metrics"|_bucket|_sum/.test(name)),
          );
        }
      },
      say: async (content: string, rest: object = {}) => {
        const body = JSON.stringify({ model: "m", messages: [{ role: "user", content }], ...rest });
        return (await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body })).text();
      },
    };
  }

  const path = 'path="/v1/chat/completions"';
  const ended = (name: string) => name.startsWith(`portico_requests_total{${path}`);
  const answered = {
    [`portico_requests_total{${path},status="200"}`]: 1,
    [`portico_request_seconds_count{${path},outcome="answered"}`]: 1,
  };

  test("counts a turn's request, history, store and adapter", async (context) => {
    const { say, moved } = await open(context);
    await say("one two three", { user: "u" });
    const asked = {
      'portico_adapter_turns_total{adapter="main",outcome="completed"}': 1,
      'portico_adapter_seconds_count{adapter="main"}': 1,
      portico_commit_seconds_count: 1,
    };
    assert.deepEqual(await moved(ended), {
      ...answered,
      ...asked,
      [`portico_first_byte_seconds_count{${path},stream="false"}`]: 1,
      'portico_history_total{history="new"}': 1,
      'portico_tokens_total{adapter="main",kind="input"}': 3,
      'portico_tokens_total{adapter="main",kind="output"}': 3,
      'portico_owner_tokens_total{owner="default",adapter="main",kind="input"}': 3,
      'portico_owner_tokens_total{owner="default",adapter="main",kind="output"}': 3,
    });
    await say("four", { user: "u", stream: true });
    assert.deepEqual(await moved(ended), {
      ...answered,
      ...asked,
      [`portico_first_byte_seconds_count{${path},stream="true"}`]: 1,
      'portico_history_total{history="continued"}': 1,
      'portico_tokens_total{adapter="main",kind="input"}': 7,
      'portico_tokens_total{adapter="main",kind="output"}': 1,
      'portico_owner_tokens_total{owner="default",adapter="main",kind="input"}': 7,
      'portico_owner_tokens_total{owner="default",adapter="main",kind="output"}': 1,
    });
    await say("too long", { max_completion_tokens: 1 });
    const { 'portico_adapter_turns_total{adapter="main",outcome="incomplete"}': incomplete, ...rest } =
      await moved(ended);
    assert.deepEqual([incomplete, rest['portico_history_total{history="stateless"}']], [1, 1]);
    assert.equal(rest["portico_commit_seconds_count"], undefined, "it is not stored");
  });

  test("counts the tokens of every turn once for its owner, but not those of a program's own messages", async (context) => {
    const app = "sk-app-0123456789abcd";
    const http = { ...endpoints, tokens: [{ name: "app", token: app }] };
    const { address, talk, gateway: turns, caller } = await startGateway(context, { ...gateway, http });
    const headers = { authorization: `Bearer ${app}`, "content-type": "application/json" };
    const post = async (body: object, more: object = {}) => {
      const init = { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify({ model: "m", ...body }) };
      return (await fetch(`${address}/v1/responses`, init)).text();
    };
    await post({ input: "one" });
    for (let times = 0; times < 2; times++) await post({ input: "two", stream: true }, { "idempotency-key": "once" });
    await post({ input: "three", background: true });
    const client = await dial(context, address, headers);
    client.create({ input: "four" });
    await client.answer();
    await (await talk({ model: "m", owner: "room", content: "five" })).text();
    const items = [{ type: "message", role: "user", content: "six" }] as const;
    const ask = {
      model: "m",
      items,
      itemsParam: "items",
      settings: { tools: [] },
      stream: false,
      keep: "yes",
    } as const;
    await turns.answer({ ...ask, background: true }, caller({ owner: "room" }));
    const output = (figures: Figures, labels: string) => figures.get(`portico_${labels},kind="output"}`);
    let figures: Figures;
    do figures = toFigures(await read(address));
    while (
      (output(figures, 'owner_tokens_total{owner="app",adapter="main"') ?? 0) < 4 ||
      (output(figures, 'tokens_total{adapter="main"') ?? 0) < 6 ||
      figures.get("portico_background_turns_running") !== 0
    );
    assert.equal(output(figures, 'owner_tokens_total{owner="app",adapter="main"'), 4);
    assert.equal(output(figures, 'tokens_total{adapter="main"'), 6);
    assert.deepEqual(
      [...figures.keys()].filter((name) => name.includes("room")),
      [],
    );
  });

  test("counts failures with their code, retries and fallbacks", async (context) => {
    const { say, moved } = await open(context);
    await say("FAIL before");
    const failed = (adapter: string, times: number) => ({
      [`portico_adapter_turns_total{adapter="${adapter}",outcome="failed",code="adapter_error"}`]: times,
      [`portico_adapter_seconds_count{adapter="${adapter}"}`]: times,
    });
    assert.deepEqual(await moved(ended), {
      [`portico_requests_total{${path},status="502"}`]: 1,
      [`portico_request_seconds_count{${path},outcome="failed"}`]: 1,
      'portico_history_total{history="stateless"}': 1,
      ...failed("main", 2),
      ...failed("spare", 1),
      'portico_adapter_retries_total{adapter="main"}': 1,
      'portico_adapter_fallbacks_total{adapter="main"}': 1,
    });
  });

  test("counts a stream that breaks off as failed, although its status was 200", async (context) => {
    const { address, say, moved } = await open(context);
    assert.match(await say("FAIL after 1 one two", { stream: true }), /"error"/);
    const grown = await moved(ended);
    assert.equal(grown[`portico_requests_total{${path},status="200"}`], 1);
    assert.equal(grown[`portico_request_seconds_count{${path},outcome="failed"}`], 1);
    assert.equal(grown[`portico_request_seconds_count{${path},outcome="answered"}`], undefined);
    const { endpoints } = summarise(readMetrics(await read(address)));
    assert.deepEqual([totalOf(endpoints), totalOf(endpoints, ["failed"])], [1, 1], "the console counts the same");
  });

  test("counts an adapter's turn as cancelled when its caller disconnects", async (context) => {
    const { address, headers, moved } = await open(context);
    const request = send(`${address}/v1/chat/completions`, { method: "POST", headers });
    request.on("error", () => {});
    const messages = [{ role: "user", content: "REPEAT 100000 on" }];
    request.end(JSON.stringify({ model: "m", messages, stream: true }));
    const [response] = await once(request, "response");
    await once(response, "data");
    request.destroy();
    const grown = await moved((name) => name.includes('outcome="cancelled"'));
    assert.equal(grown['portico_adapter_turns_total{adapter="main",outcome="cancelled"}'], 1);
  });

  test("does not count a replayed answer as another turn", async (context) => {
    const { address, headers, moved } = await open(context);
    const post = async (body: object) =>
      fetch(`${address}/v1/responses`, {
        method: "POST",
        headers: { ...headers, "idempotency-key": "once" },
        body: JSON.stringify({ model: "m", input: "hi", ...body }),
      });
    const isThere = (name: string) => name.startsWith("portico_requests_total");
    const { id } = (await (await post({})).json()) as { id: string };
    assert.equal((await moved(isThere))['portico_tokens_total{adapter="main",kind="output"}'], 1);
    assert.equal((await post({})).headers.get("x-portico-replayed"), "true");
    assert.deepEqual(await moved(isThere), {
      'portico_requests_total{path="/v1/responses",status="200"}': 1,
      'portico_request_seconds_count{path="/v1/responses",outcome="answered"}': 1,
    });
    await (await fetch(`${address}/v1/responses/${id}?stream=true`, { headers })).text();
    assert.deepEqual(await moved(isThere), {
      'portico_requests_total{path="/v1/responses/:id",status="200"}': 1,
      'portico_request_seconds_count{path="/v1/responses/:id",outcome="answered"}': 1,
    });
  });

  test("uses nothing that callers choose as a label", async (context) => {
    const { address, headers, say, moved } = await open(context);
    const ask = async (word: string) => {
      await say("hello", { model: word, user: word });
      await fetch(`${address}/v1/models/${word}`, { headers });
      await fetch(`${address}/${word}?${word}=${word}`, { headers });
    };
    await ask("apple");
    await moved((name) => name.includes('path="unknown"'));
    const before = new Set(toFigures(await read(address)).keys());
    for (const word of ["pear", "plum", "quince"]) await ask(word);
    assert.equal((await moved(ended))['portico_adapter_turns_total{adapter="main",outcome="completed"}'], 3);
    const text = await read(address);
    assert.deepEqual(
      [...toFigures(text).keys()].filter((name) => !before.has(name)),
      [],
    );
    assert.doesNotMatch(text, /apple|pear|plum|quince|conv_|resp_/);
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
    assert.ok(text.includes(`portico_build_info{version="${version}",`));
  });
});

suite("the text", () => {
  const idle: MetricSources = {
    adapters: () => [{ name: 'odd "name"\\\n', state: "open" }],
    turns: () => 0,
    load: () => ({ waiting: 0, live: 0 }),
    heldBytes: () => 0,
    connections: () => 0,
    ready: async () => {},
  };

  test("is valid for Prometheus: each name once, with its help and type, and labels escaped", async () => {
    const metrics = createMetrics(undefined, "1.2.3");
    metrics.count("/v1/responses", 200, 12, { ms: 3, isStreamed: true });
    metrics.asked("main").ended({ outcome: "failed", code: "adapter_timeout" });
    const { text } = await metrics.read(idle);
    const names = new Set<string>();
    for (const block of text.trimEnd().split("\n\n")) {
      const [help = "", type = "", ...samples] = block.split("\n");
      const [, name = ""] = /^# HELP (\w+) (?!Of these).+\.$/.exec(help) ?? assert.fail(help);
      const [, kind] = new RegExp(`^# TYPE ${name} (counter|gauge|histogram)$`).exec(type) ?? assert.fail(type);
      assert.ok(!names.has(name), name);
      names.add(name);
      assert.ok(kind !== "counter" || name.endsWith("_total"), name);
      const endings = kind === "histogram" ? "(_bucket|_sum|_count)" : "";
      const label = String.raw`\w+="(?:[^"\\\n]|\\["\\n])*"`;
      const form = new RegExp(String.raw`^${name}${endings}(\{${label}(,${label})*\})? \d+(\.\d+)?(e-?\d+)?$`);
      for (const sample of samples) assert.match(sample, form);
      assert.equal(
        new Set(samples.map((sample) => sample.slice(0, sample.lastIndexOf(" ")))).size,
        samples.length,
        name,
      );
    }
    assert.match(text, /adapter="odd \\"name\\"\\\\\\n"/);
    const figures = toFigures(text);
    const files = process.platform === "linux" ? ["process_open_fds", "process_max_fds"] : [];
    for (const name of [
      `portico_build_info{version="1.2.3",node="${process.versions.node}"}`,
      "process_start_time_seconds",
      "process_cpu_seconds_total",
      "process_resident_memory_bytes",
      ...files,
    ]) {
      assert.ok((figures.get(name) ?? 0) > 0, name);
    }
  });

  test("has cumulative buckets, up to one for everything", async () => {
    const metrics = createMetrics();
    for (const ms of [0, 5, 5.1, 1_000, 599_999, 700_000]) metrics.count("/p", 200, ms);
    const figures = toFigures((await metrics.read(idle)).text);
    const within = (bound: string) =>
      figures.get(`portico_request_seconds_bucket{path="/p",outcome="answered",le="${bound}"}`);
    assert.deepEqual(["0.005", "0.01", "0.5", "1", "600", "+Inf"].map(within), [2, 3, 3, 4, 5, 6]);
    assert.equal(figures.get('portico_request_seconds_count{path="/p",outcome="answered"}'), 6);
    const sum = figures.get('portico_request_seconds_sum{path="/p",outcome="answered"}') ?? 0;
    assert.ok(Math.abs(sum - 1_301.0091) < 1e-6, String(sum));
  });
});
