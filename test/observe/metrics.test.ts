/** What Prometheus reads: the names and labels that the documentation promises, and none that a caller can choose. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { begin, call, endpoints, hear, paths, replyWith, startServer, tell, tellWell } from "../harness/client.ts";
import { type Gateway, gate, openGateway, operatorToken, say, shareGateway, usage } from "../harness/house.ts";
import { answerJson } from "../harness/upstream.ts";
import { until } from "../store/aid.ts";

type Figures = ReadonlyMap<string, number>;

async function read({ address }: { readonly address: string }): Promise<string> {
  const { status, raw, headers } = await call(address, "GET", "/metrics", undefined, { token: operatorToken });
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  return raw;
}

/** Every sample by its name and labels, as written; labels in the order of their names. */
function toFigures(text: string): Figures {
  const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    samples.map((line) => {
      const [, name = "", labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? assert.fail(line);
      const sorted = [...labels.matchAll(/\w+="(?:[^"\\]|\\.)*"/g)].map(([label]) => label).toSorted();
      return [sorted.length > 0 ? `${name}{${sorted.join(",")}}` : name, Number(value)];
    }),
  );
}

/** By how much samples have grown; the line of an answer may be counted a moment after its caller has it. */
async function grown(gateway: Gateway, before: Figures, wanted: Readonly<Record<string, number>>): Promise<void> {
  let found: Record<string, number> = {};
  const isThere = async () => {
    const after = await look(gateway);
    found = Object.fromEntries(
      Object.keys(wanted).map((name) => [name, (after.get(name) ?? 0) - (before.get(name) ?? 0)]),
    );
    return isDeepStrictEqual(found, wanted);
  };
  await until(isThere).catch(() => assert.deepEqual(found, wanted));
}

const open = shareGateway();
const look = async (gateway: Gateway) => toFigures(await read(gateway));
const tokens = (kind: string) => `portico_tokens_total{adapter="model",kind="${kind}"}`;

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}: ${stream ? "a streamed" : "a whole"} turn is counted once: its request, history, adapter and tokens`, async () => {
      const gateway = await open();
      gateway.model.script = [say("hi"), [{ type: "usage", usage: { ...usage, cachedTokens: 1 } }]];
      const before = await look(gateway);
      await tellWell(gateway.address, { on, say: "hello", stream, more: { user: `${on} ${stream}` } });
      const path = `path="${paths[on]}"`;
      await grown(gateway, before, {
        [`portico_requests_total{${path},status="200"}`]: 1,
        [`portico_request_seconds_count{outcome="answered",${path}}`]: 1,
        [`portico_first_byte_seconds_count{${path},stream="${stream}"}`]: 1,
        'portico_history_total{history="new"}': 1,
        'portico_adapter_turns_total{adapter="model",outcome="completed"}': 1,
        'portico_adapter_seconds_count{adapter="model"}': 1,
        portico_commit_seconds_count: 1,
        [tokens("input")]: 3,
        [tokens("cached")]: 1,
        [tokens("output")]: 2,
        'portico_owner_tokens_total{adapter="model",kind="cached",owner="default"}': 1,
      });
    });
  }
}

test("a replayed answer is counted as a request, and not as another turn", async () => {
  const gateway = await open();
  gateway.model.script = [say("hi"), [{ type: "usage", usage }]];
  const asked = { on: "chat", say: "hello", headers: { "idempotency-key": "once" } } as const;
  const before = await look(gateway);
  for (let times = 0; times < 2; times++) await tellWell(gateway.address, asked);
  await grown(gateway, before, {
    'portico_requests_total{path="/v1/chat/completions",status="200"}': 2,
    [tokens("output")]: 2,
    'portico_owner_tokens_total{adapter="model",kind="output",owner="default"}': 2,
    'portico_adapter_turns_total{adapter="model",outcome="completed"}': 1,
  });
});

test("a stream that breaks off is counted as failed, although its status was 200", async () => {
  const gateway = await open();
  gateway.model.script = async function* () {
    yield say("half");
    throw new Error("The model broke.");
  };
  const before = await look(gateway);
  await tell(gateway.address, { on: "responses", say: "hello", stream: true });
  await grown(gateway, before, {
    'portico_requests_total{path="/v1/responses",status="200"}': 1,
    'portico_request_seconds_count{outcome="failed",path="/v1/responses"}': 1,
    'portico_request_seconds_count{outcome="answered",path="/v1/responses"}': 0,
  });
});

test("a caller that leaves is a request of status 499 and a cancelled turn of its adapter", async () => {
  const gateway = await open();
  gateway.model.script = async function* (_, signal) {
    yield say("so far");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const before = await look(gateway);
  const response = await begin(gateway.address, { on: "chat", say: "hello", stream: true });
  await hear(response, "so far");
  response.destroy();
  await grown(gateway, before, { 'portico_adapter_turns_total{adapter="model",outcome="cancelled"}': 1 });
  await grown(gateway, before, { 'portico_request_seconds_count{outcome="left",path="/v1/chat/completions"}': 1 });
});

test("an adapter's failures are counted with their code, its retries and its fallback one by one", async (context) => {
  const [main, spare] = [await startServer(context), await startServer(context)];
  const server = (adapters: object) => Object.values(adapters)[0] as Record<string, unknown>;
  const gateway = await openGateway(context, {
    gateway: {
      adapters: {
        main: { ...server(main.adapters), retries: 1, fallback: ["spare"] },
        spare: { ...server(spare.adapters), retries: 0 },
      },
      default_adapter: "main",
    },
  });
  main.script = answerJson({ error: { message: "broken" } }, 500, { "retry-after": "0" });
  spare.script = replyWith(() => ({ content: "I am here." }));
  const before = await look(gateway);
  await tellWell(gateway.address, { on: "chat", say: "hello" });
  await grown(gateway, before, {
    'portico_adapter_turns_total{adapter="main",code="adapter_error",outcome="failed"}': 2,
    'portico_adapter_turns_total{adapter="spare",outcome="completed"}': 1,
  });
});

test("running, waiting and background turns are gauges that return to zero", async (context) => {
  const gateway = await openGateway(context);
  const go = gate();
  gateway.model.script = async function* () {
    await go.opened;
    yield say("on");
  };
  const gauges = async () => {
    const figures = await look(gateway);
    return ["turns_running", "turns_waiting", "background_turns_running"].map((name) => figures.get(`portico_${name}`));
  };
  const become = (...wanted: number[]) => until(async () => String(await gauges()) === String(wanted));
  assert.deepEqual(await gauges(), [0, 0, 0]);
  await tellWell(gateway.address, { on: "responses", say: "hi", more: { background: true } });
  const answers = [1, 2, 3].map(() => tellWell(gateway.address, { on: "chat", say: "hi", more: { user: "u" } }));
  await become(3, 2, 1);
  go.open();
  await Promise.all(answers);
  await become(0, 0, 0);
});

test("nothing that callers choose is a label, so the number of samples is bounded", async (context) => {
  const gateway = await openGateway(context);
  const ask = async (word: string) => {
    const more = { user: word, model: word, metadata: { word } };
    const { id } = await tellWell(gateway.address, { on: "responses", say: word, more });
    await call(gateway.address, "GET", `/v1/responses/${id}`);
    await call(gateway.address, "GET", `/v1/models/${word}`);
    await call(gateway.address, "GET", `/${word}?${word}=${word}`);
    await call(gateway.address, "GET", "/v1/models", undefined, { token: word });
  };
  const named = (text: string) =>
    [...toFigures(text).keys()].filter((name) => name.startsWith("portico_") && !name.includes('"/metrics"'));
  await ask("apple");
  let before: string[] = [];
  await until(async () => {
    before = named(await read(gateway));
    return before.some((name) => name.includes("unknown"));
  });
  for (const word of ["pear", "plum", "quince"]) await ask(word);
  const text = await read(gateway);
  assert.deepEqual(
    named(text).filter((name) => !before.includes(name)),
    [],
  );
  assert.doesNotMatch(text, /apple|pear|plum|quince|conv_|resp_/);
});

test("the text is valid for Prometheus: each name once, with its help and type, then its samples", async () => {
  const text = await read(await open());
  const kinds = new Map<string, string>();
  const seen = new Set<string>();
  for (const line of text.trimEnd().split("\n")) {
    if (line === "") continue;
    const [, name, kind] = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (name !== undefined) {
      assert.ok(!kinds.has(name), `${name} once`);
      kinds.set(name, kind!);
    } else if (!line.startsWith("# HELP ")) {
      assert.match(
        line,
        /^\w+(\{\w+="(?:[^"\\\n]|\\.)*"(,\w+="(?:[^"\\\n]|\\.)*")*\})? (\d+(\.\d+)?(e[+-]?\d+)?|\+Inf|NaN)$/,
      );
      const sample = line.slice(0, line.lastIndexOf(" "));
      assert.ok(!seen.has(sample), `${sample} once`);
      seen.add(sample);
      const whole = sample.replace(/\{.*/, "");
      assert.ok(kinds.has(whole) || kinds.get(whole.replace(/_(bucket|sum|count)$/, "")) === "histogram", line);
    }
  }
  const names = new Set([...seen].map((sample) => sample.replace(/\{.*/, "")));
  for (const name of [
    "portico_build_info",
    "portico_store_ready",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
  ]) {
    assert.ok(names.has(name), name);
  }
});
