/** What is stored of an answer that was cut off: its client has received its items' ids, and may reference them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import OpenAI from "openai";
import { GatewayError } from "../../src/core/errors.ts";
import { type Box, createBox, say, token } from "../scripted.ts";

/** The first answer is cut off after a word, the others are complete. */
async function open(context: TestContext, cut: "by its caller" | "by the model") {
  let turns = 0;
  const left = Promise.withResolvers<void>();
  const box: Box = createBox(context, async function* (_turn, signal) {
    yield say("half");
    if ((turns += 1) > 1) return;
    if (cut === "by the model") throw new GatewayError("adapter_error", "The model broke.");
    await once(signal, "abort");
    left.resolve();
    signal.throwIfAborted();
  });
  const client = new OpenAI({ apiKey: token, baseURL: `${await box.listen()}/v1`, maxRetries: 0 });
  return { box, client, left: left.promise };
}

/** What the caller has of the cut-off answer: its id, and that of its item. */
async function readHalf(client: OpenAI, cut: "by its caller" | "by the model") {
  const stream = await client.responses.create({ model: "m", input: "hi", user: "u", stream: true });
  let response = "";
  let item = "";
  try {
    for await (const event of stream) {
      if (event.type === "response.created") response = event.response.id;
      if (event.type === "response.output_item.added") item = event.item.id ?? "";
      if (event.type === "response.output_text.delta" && cut === "by its caller") stream.controller.abort();
    }
  } catch (thrown) {
    assert.ok(thrown instanceof OpenAI.APIError, String(thrown));
  }
  return { response, item };
}

const statuses = { "by its caller": "cancelled", "by the model": "failed" } as const;
for (const cut of ["by its caller", "by the model"] as const) {
  test(`an answer that is cut off ${cut} can be retrieved and its item referenced, but is in no thread`, async (context) => {
    const { box, client, left } = await open(context, cut);
    const { response, item } = await readHalf(client, cut);
    if (cut === "by its caller") await left;
    let stored = await client.responses.retrieve(response).catch(() => undefined);
    for (; stored === undefined; stored = await client.responses.retrieve(response).catch(() => undefined)) {
      await new Promise(setImmediate);
    }
    assert.deepEqual([stored.status, stored.output_text], [statuses[cut], "half"]);
    assert.equal(stored.error?.message, cut === "by the model" ? "The model broke." : undefined);

    await client.responses.create({ model: "m", input: "again", user: "u" });
    assert.deepEqual(textsSeen(box), ["again"], "the next turn of the session does not include it");

    const named = { type: "item_reference", id: item } as const;
    const input = [{ role: "user", content: "hi" }, named, { role: "user", content: "go on" }] as const;
    await client.responses.create({ model: "m", input: [...input] });
    assert.deepEqual(textsSeen(box), ["hi", "half", "go on"], "a referenced item is shown to the model");
  });
}

function textsSeen({ adapter }: Box): readonly unknown[] {
  return adapter.turns.at(-1)!.items.map((item) => (item.type === "message" ? item.content : item));
}

test("a reference to an item of an answer that was just stopped waits until the answer is stored", async (context) => {
  const stopped = Promise.withResolvers<void>();
  let turns = 0;
  const box = createBox(context, async function* (_turn, signal) {
    yield say("half");
    if ((turns += 1) > 1) return;
    await once(signal, "abort");
    await stopped.promise;
    signal.throwIfAborted();
  });
  const client = new OpenAI({ apiKey: token, baseURL: `${await box.listen()}/v1`, maxRetries: 0 });
  const { item } = await readHalf(client, "by its caller");
  const named = { type: "item_reference", id: item } as const;
  const next = client.responses.create({ model: "m", input: [named, { role: "user", content: "go on" }] });
  await assert.rejects(Promise.race([next, client.responses.retrieve("resp_0")]), { status: 404 }, "it waits");
  stopped.resolve();
  assert.equal((await next).status, "completed");
  assert.deepEqual(textsSeen(box), ["half", "go on"]);
});
