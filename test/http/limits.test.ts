/** How much at once and how often: turns, requests a minute, and who may wait for a busy session. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, hear, readAll, tell, tellWell, type Wish } from "../harness/client.ts";
import { gate, openGateway, say, type Script, shareGateway, toSettings } from "../harness/house.ts";
import { chat, exchange, head } from "./raw.ts";

/** A model that says a word, and the rest when it may. */
function holdOn() {
  const going = gate();
  const script: Script = async function* () {
    yield say("a");
    await going.opened;
    yield say("b");
  };
  return { script, going };
}

const wish = { on: "chat", say: "hi" } as const;
const app = "sk-app-0123456789abcdef";
const again = "sk-again-0123456789abcdef";

for (const on of endpoints) {
  test(`${on}: more turns than max_concurrent_turns are refused with 503 and the time to wait`, async (context) => {
    const { script, going } = holdOn();
    const { address } = await openGateway(context, { script, limits: { max_concurrent_turns: 1 } });
    const first = await begin(address, { on, say: "hi", stream: true });
    const second = await tell(address, { on, say: "hi" });
    assert.deepEqual([second.status, second.error?.["type"], second.error?.["code"]], [503, "api_error", "overloaded"]);
    assert.match(String(second.error?.["message"]), /max_concurrent_turns/);
    assert.ok(Number(second.headers.get("retry-after")) >= 1);
    assert.equal((await call(address, "GET", "/v1/models")).status, 200, "what is no turn is answered");
    going.open();
    await readAll(first);
    await tellWell(address, { on, say: "hi" });
  });
}

test("a turn that fails, or whose caller leaves, gives its place back", async (context) => {
  const { address, model } = await openGateway(context, { limits: { max_concurrent_turns: 1 } });
  model.script = async function* () {
    yield [];
    throw new Error("no");
  };
  for (let time = 0; time < 3; time++) assert.notEqual((await tell(address, wish)).error?.["code"], "overloaded");
  model.script = holdOn().script;
  const left = await begin(address, { ...wish, stream: true });
  left.on("error", () => {}).destroy();
  model.script = [say("free")];
  let status = 503;
  while (status === 503) ({ status } = await tell(address, wish));
  assert.equal(status, 200);
});

test("a request for which there is no place is refused before its body is read", async (context) => {
  const { script, going } = holdOn();
  const { address } = await openGateway(context, { script, limits: { max_concurrent_turns: 1 } });
  const first = await begin(address, { ...wish, stream: true });
  assert.match(await exchange(context, address, head(chat, { "content-length": 1_000 })), /^HTTP\/1\.1 503 /);
  going.open();
  await readAll(first);
});

test("a token's own limit of turns is shared by all tokens of its name, and is nobody else's", async (context) => {
  const { script, going } = holdOn();
  const limits = { max_concurrent_turns: 1 };
  const tokens = [
    { name: "app", token: app, limits },
    { name: "app", token: again, limits },
  ];
  const { address } = await openGateway(context, { script, http: { tokens } });
  const stream = { ...wish, stream: true } as const;
  const first = await begin(address, { ...stream, token: app });
  await hear(first, '"a"');
  const second = await tell(address, { ...wish, token: again });
  assert.deepEqual(
    [second.status, second.error?.["type"], second.error?.["code"]],
    [429, "rate_limit_error", "rate_limit_exceeded"],
  );
  assert.ok(second.headers.get("retry-after"));
  const other = await begin(address, stream);
  assert.equal(other.statusCode, 200);
  const [firstEnd, otherEnd] = [hear(first, "[DONE]"), hear(other, "[DONE]")];
  going.open();
  await Promise.all([firstEnd, otherEnd]);
  let status = 429;
  while (status === 429) ({ status } = await tell(address, { ...wish, token: again }));
  assert.equal(status, 200);
});

let at = Date.parse("2030-01-01T00:00:00Z");
const rated = shareGateway({
  now: () => new Date(at),
  limits: { requests_per_minute: 60, burst: 3 },
  http: {
    tokens: [
      { name: "slow", token: app, limits: { requests_per_minute: 1, burst: 1 } },
      { name: "other", token: again },
    ],
  },
});

async function statuses(address: string, times: number, more: Partial<Wish> = {}): Promise<number[]> {
  const all: number[] = [];
  for (let time = 0; time < times; time++) all.push((await tell(address, { ...wish, ...more })).status);
  return all;
}

test("a rate allows a burst, then refuses with the time to wait, and refills no further than the burst", async () => {
  const { address } = await rated();
  assert.deepEqual(await statuses(address, 4), [200, 200, 200, 429]);
  const { error, headers } = await tell(address, wish);
  assert.deepEqual([error?.["type"], error?.["code"]], ["rate_limit_error", "rate_limit_exceeded"]);
  assert.equal(headers.get("retry-after"), "1");
  assert.deepEqual(await statuses(address, 1, { token: again }), [200], "each name has its own");
  at += 1_000;
  assert.deepEqual(await statuses(address, 2), [200, 429]);
  at += 3_600_000;
  assert.deepEqual(await statuses(address, 4), [200, 200, 200, 429]);
  at += 3_600_000;
});

test("a token's own rate stands in place of the general one", async () => {
  const { address } = await rated();
  assert.deepEqual(await statuses(address, 1, { token: app }), [200]);
  const { status, headers } = await tell(address, { ...wish, token: app });
  assert.deepEqual([status, headers.get("retry-after")], [429, "60"]);
});

test("more than max_queued_per_thread waiters for a session are refused with session_busy", async (context) => {
  const { script, going } = holdOn();
  const portico = await openGateway(context, { script, limits: { max_queued_per_thread: 2, heartbeat_ms: 10 } });
  const more = { user: "busy" };
  const first = await begin(portico.address, { ...wish, stream: true, more });
  // Heartbeats tell that they stand in line.
  const waiting = [];
  for (let time = 0; time < 2; time++) waiting.push(await begin(portico.address, { ...wish, stream: true, more }));
  const refused = await tell(portico.address, { ...wish, more });
  assert.deepEqual(
    [refused.status, refused.error?.["type"], refused.error?.["code"]],
    [429, "rate_limit_error", "session_busy"],
  );
  assert.ok(refused.headers.get("retry-after"));
  const other = await begin(portico.address, { ...wish, stream: true, more: { user: "other" } });
  assert.equal(other.statusCode, 200);
  going.open();
  for (const each of [first, ...waiting, other]) assert.match(await readAll(each), /\[DONE\]/);
});

test("running turns and used rates count on through a reload", async (context) => {
  const { script, going } = holdOn();
  const portico = await openGateway(context, { script });
  const first = await begin(portico.address, { ...wish, stream: true });
  await portico.reload(toSettings({ limits: { max_concurrent_turns: 1 } }));
  assert.equal((await tell(portico.address, wish)).status, 503);
  going.open();
  await readAll(first);
  await portico.reload(toSettings({ limits: { requests_per_minute: 2 } }));
  assert.deepEqual(await statuses(portico.address, 3), [200, 200, 429]);
  await portico.reload(toSettings({ limits: { requests_per_minute: 2, max_body_bytes: 10_000 } }));
  assert.deepEqual(await statuses(portico.address, 1), [429]);
  await portico.reload(toSettings({}));
  await tellWell(portico.address, wish);
});
