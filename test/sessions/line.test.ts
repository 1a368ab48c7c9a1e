/** Turns that continue a tip stand in line; all others hang at an exact place and wait for nobody. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, endpoints, readAll, tell, tellWell, type Wish } from "../harness/client.ts";
import { gate, type Gateway, openGateway, say, seenBy, shareGateway, toLines } from "../harness/house.ts";
import { toWire } from "./script.ts";

const open = shareGateway();

/** A model that answers whoever says `slow` only when it is let go, and tells when it was asked. */
function holdSlow({ model }: Gateway) {
  const [asked, go] = [gate(), gate()];
  model.script = async function* (turn) {
    const words = toLines(turn.items).at(-1) ?? "";
    if (words.endsWith("slow")) {
      asked.open();
      await go.opened;
    }
    yield say(`re: ${words.slice("user: ".length)}`);
  };
  return { asked: asked.opened, go };
}

for (const on of endpoints) {
  test(`${on}: a turn that came while another ran sees it`, async () => {
    const gateway = await open();
    const { address, model } = gateway;
    const wish = (words: string): Wish => ({ on, say: words, more: { user: `waits on ${on}` } });
    await tellWell(address, wish("one"));
    const { asked, go } = holdSlow(gateway);
    const first = tellWell(address, wish("slow"));
    await asked;
    const others = ["a", "b", "c"].map((words) => tellWell(address, wish(words)));
    const elsewhere = await tellWell(address, { on, say: "else", more: { user: `another on ${on}` } });
    assert.equal(elsewhere.text, "re: else");
    go.open();
    await Promise.all([first, ...others]);
    await tellWell(address, wish("last"));
    const seen = seenBy(model.turns.at(-1));
    assert.equal(seen.length, 11);
    assert.deepEqual(seen.slice(2, 4), ["user: slow", "assistant: re: slow"]);
    for (const words of ["a", "b", "c"])
      assert.equal(seen[seen.indexOf(`user: ${words}`) + 1], `assistant: re: ${words}`);
  });

  test(`${on}: a request that shows its history does not wait`, async () => {
    const gateway = await open();
    const more = { user: `shows on ${on}` };
    const lines = ["user: one", "assistant: re: one"];
    const { asked, go } = holdSlow(gateway);
    await tellWell(gateway.address, { on, say: "one", more });
    const slow = tellWell(gateway.address, { on, say: toWire(on, [...lines, "user: slow"]), more });
    await asked;
    const other = await tellWell(gateway.address, { on, say: toWire(on, [...lines, "user: quick"]), more });
    assert.equal(other.text, "re: quick");
    go.open();
    await slow;
  });

  test(`${on}: while a session's first turn runs, a request with other instructions is a root of its own`, async () => {
    const gateway = await open();
    const more = { user: `title on ${on}` };
    const { asked, go } = holdSlow(gateway);
    const slow = tellWell(gateway.address, { on, say: toWire(on, ["system: You help.", "user: slow"]), more });
    await asked;
    const lines = ["system: Make a title.", "user: quick"];
    const title = await tellWell(gateway.address, { on, say: toWire(on, lines), more });
    assert.equal(title.text, "re: quick");
    assert.deepEqual(seenBy(gateway.model.turns.at(-1)), lines);
    go.open();
    await slow;
  });
}

test("a full line refuses with 429 and says when to come again", async (context) => {
  const gateway = await openGateway(context, { limits: { max_queued_per_thread: 1 } });
  const { address } = gateway;
  const wish = (words: string): Wish => ({ on: "chat", say: words, more: { user: "busy" } });
  await tellWell(address, wish("one"));
  const { asked, go } = holdSlow(gateway);
  const first = tellWell(address, wish("slow"));
  await asked;
  const others = [tell(address, wish("a")), tell(address, wish("b"))];
  const refused = await Promise.race(others);
  assert.deepEqual([refused.status, refused.error?.["code"]], [429, "session_busy"]);
  assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
  go.open();
  await first;
  assert.deepEqual((await Promise.all(others)).map(({ status }) => status).toSorted(), [200, 429]);
});

test("whoever waits in line hears heartbeats", async (context) => {
  const gateway = await openGateway(context, { limits: { heartbeat_ms: 20 } });
  const wish = (words: string): Wish => ({ on: "responses", say: words, stream: true, more: { user: "patient" } });
  await tellWell(gateway.address, wish("one"));
  const { asked, go } = holdSlow(gateway);
  const first = tellWell(gateway.address, wish("slow"));
  await asked;
  const response = await begin(gateway.address, wish("waits"));
  response.once("data", (bytes: Buffer) => {
    assert.match(String(bytes), /^: /);
    go.open();
  });
  assert.match(await readAll(response), /re: waits/);
  await first;
});

test("a caller who leaves the line never reaches the model", async () => {
  const gateway = await open();
  const wish = (words: string): Wish => ({ on: "chat", say: words, more: { user: "leaves the line" } });
  await tellWell(gateway.address, wish("one"));
  const { asked, go } = holdSlow(gateway);
  const first = tellWell(gateway.address, wish("slow"));
  await asked;
  const leaving = new AbortController();
  const left = tell(gateway.address, wish("gone"), leaving.signal);
  const stays = tellWell(gateway.address, wish("stays"));
  leaving.abort();
  await assert.rejects(left);
  go.open();
  await Promise.all([first, stays]);
  await tellWell(gateway.address, wish("last"));
  assert.equal(seenBy(gateway.model.turns.at(-1)).includes("user: gone"), false);
});

for (const on of endpoints) {
  test(`${on}: with a bound of 0 a second concurrent request is refused, not the first`, async (context) => {
    const gateway = await openGateway(context, { limits: { max_queued_per_thread: 0 } });
    const { address } = gateway;
    const wish = (words: string): Wish => ({ on, say: words, more: { user: "ann" } });
    await tellWell(address, wish("one"));
    await tellWell(address, wish("two"));
    const { asked, go } = holdSlow(gateway);
    const first = tellWell(address, wish("slow"));
    await asked;
    const second = await tell(address, wish("three"));
    assert.deepEqual([second.status, second.error?.["code"]], [429, "session_busy"]);
    go.open();
    await first;
    await tellWell(address, wish("three"));
  });
}
