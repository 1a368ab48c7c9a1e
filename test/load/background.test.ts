/** Hundreds of background turns, some cancelled, some followed, some still running when the gateway ends: none is lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, readEvents, tellWell } from "../harness/client.ts";
import { gate, type Gateway, makeFolder, openGateway, say, type Script } from "../harness/house.ts";

const total = process.env["PORTICO_LONG"] === "1" ? 1_000 : 200;
const numbers = Array.from({ length: total }, (_, number) => number);
const words = ["one ", "two ", "three ", "four"];

/** Runs through numbers, so many at a time. */
async function each(list: readonly number[], atOnce: number, run: (number: number) => Promise<void>): Promise<void> {
  const left = list.values();
  const work = async () => {
    for (const number of left) await run(number);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

const numbersOf = (raw: string) =>
  readEvents(raw)
    .filter((event) => event !== "[DONE]")
    .map((event) => JSON.parse(event).sequence_number as number);

test("of hundreds of background responses none is lost, doubled or left unfinished, also over a restart", async (context) => {
  const folder = makeFolder(context);
  const never = gate();
  const script: Script = async function* (turn, signal) {
    const isStuck = JSON.stringify(turn.items).includes("stuck");
    for (const word of words) {
      yield say(word);
      await new Promise(setImmediate);
      const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
      if (isStuck) await Promise.race([never.opened, aborted]);
    }
  };
  const options = { folder, script, limits: { drain_timeout_ms: 1 } };
  let gateway: Gateway = await openGateway(context, options);
  const get = async (path: string) => (await call(gateway.address, "GET", `/v1/responses/${path}`)).raw;
  const ids: string[] = [];

  await each(numbers, 40, async (number) => {
    const isStuck = number >= total - 50;
    const text = isStuck ? "stuck" : "go on";
    const more = { background: true, user: `user-${number}` };
    const { id } = await tellWell(gateway.address, { on: "responses", say: text, more });
    ids[number] = id;
    if (number % 3 === 0) {
      const { status, body } = await call(gateway.address, "POST", `/v1/responses/${id}/cancel`);
      assert.ok(status === 200 && ["cancelled", "completed"].includes(body.status), JSON.stringify(body));
    } else if (number % 3 === 1 && !isStuck) {
      const after = number % 5;
      const heard = numbersOf(await get(`${id}?stream=true&starting_after=${after}`));
      assert.deepEqual(
        heard,
        heard.map((_, index) => after + 1 + index),
      );
    }
  });
  assert.equal(new Set(ids).size, total);
  await gateway.close();
  gateway = await openGateway(context, options);

  const counts: Record<string, number> = {};
  await each(numbers, 40, async (number) => {
    const { status, error, output } = JSON.parse(await get(ids[number]!));
    counts[status] = (counts[status] ?? 0) + 1;
    if (status === "failed") assert.equal(error.code, "server_error");
    if (status === "completed") assert.equal(output[0].content[0].text, words.join(""));
    if (number % 10 !== 1 || status !== "completed") return;
    const whole = await get(`${ids[number]}?stream=true`);
    assert.deepEqual(
      numbersOf(whole),
      numbersOf(whole).map((_, index) => index),
    );
    const rest = await get(`${ids[number]}?stream=true&starting_after=2`);
    assert.ok(whole.endsWith(rest), "byte for byte");
  });
  context.diagnostic(JSON.stringify(counts));
  assert.deepEqual(Object.keys(counts).toSorted(), ["cancelled", "completed", "failed"]);
  assert.equal(
    Object.values(counts).reduce((sum, count) => sum + count),
    total,
  );
  assert.ok(counts["failed"]! >= 30, "those that ran at the end are told as failed");
});
