/** A caller that disconnects stops its turn: the model is let go, and its session is as it was. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { test } from "node:test";
import { begin, endpoints, hear, paths, toRequest, type Wish } from "../harness/client.ts";
import { type Gateway, openGateway, say, seenBy, shareGateway } from "../harness/house.ts";
import { beginEvents, chunk, startUpstream, writeEvent } from "../harness/upstream.ts";
import { ask, askWell, failsAfter, hold, idIn, look } from "./outlive.ts";

const open = shareGateway({ limits: { drain_timeout_ms: 0 } });

/** Sends a request, and disconnects when told to. */
async function sendAndLeave(address: string, wish: Wish): Promise<() => void> {
  const { body, ...request } = toRequest(wish);
  const sent = send(address + paths[wish.on], request).on("error", () => {});
  await once(sent.end(body), "finish");
  return () => sent.destroy();
}

/** Resolves when the log says that so many callers have left. */
async function hasLeft({ address, logged }: Gateway, callers: number): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    if (logged.filter(({ fields }) => fields["status"] === 499).length >= callers) return;
    await fetch(`${address}/healthz`);
  }
  assert.fail("Nobody has left.");
}

for (const on of endpoints) {
  for (const stream of [false, true]) {
    test(`${on}: a caller that leaves a ${stream ? "streamed" : "whole"} answer stops the model, and its session does not move`, async () => {
      const { address, model } = await open();
      const user = `leaves ${on} ${stream}`;
      model.script = [say("yes")];
      await askWell(address, { on, say: "first", more: { user } });
      const held = hold();
      model.script = held.script;
      const leave = await sendAndLeave(address, { on, say: "unheard", stream, more: { user } });
      await held.begun;
      leave();
      await held.aborted;
      model.script = [say("ok")];
      await askWell(address, { on, say: "next", more: { user } });
      assert.deepEqual(seenBy(model.turns.at(-1)), ["user: first", "assistant: yes", "user: next"]);
    });
  }

  test(`${on}: a caller that leaves while it waits for its session never reaches the model, and those behind it do`, async (context) => {
    const gateway = await openGateway(context);
    const { address, model } = gateway;
    const held = hold();
    model.script = held.script;
    const more = { user: "line" };
    const first = askWell(address, { on, say: "first", more });
    await held.begun;
    const leave = await sendAndLeave(address, { on, say: "unheard", more });
    const last = askWell(address, { on, say: "last", more });
    leave();
    await hasLeft(gateway, 1);
    held.go();
    await Promise.all([first, last]);
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: first", "assistant: one two", "user: last"]);
    assert.equal(model.turns.length, 2);
  });
}

for (const cut of ["by its caller", "by the model"] as const) {
  test(`an answer that was cut off ${cut} is found by its id, as far as it came, but is in no session`, async () => {
    const { address, model } = await open();
    const held = hold();
    model.script = cut === "by its caller" ? held.script : failsAfter("one");
    const more = { user: `cut off ${cut}` };
    const stream = await begin(address, { on: "responses", say: "hi", stream: true, more });
    const id = idIn({ raw: await hear(stream, cut === "by its caller" ? "one" : "[DONE]") });
    stream.destroy();
    if (cut === "by its caller") await held.aborted;
    let found = await look(address, id);
    for (let tries = 0; found.status === 404 && tries < 1000; tries++) found = await look(address, id);
    assert.equal(found.body.output[0].content[0].text, "one");
    assert.notEqual(found.body.status, "completed");

    model.script = [say("ok")];
    await askWell(address, { on: "responses", say: "next", more });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: next"]);
    const named = await ask(address, { on: "responses", say: "next", more: { previous_response_id: id } });
    assert.equal(named.body.error.code, "previous_response_not_found");

    const item = { type: "item_reference", id: found.body.output[0].id };
    const input = [{ role: "user", content: "hi" }, item, { role: "user", content: "go on" }];
    await askWell(address, { on: "responses", say: input });
    assert.deepEqual(seenBy(model.turns.at(-1)), ["user: hi", "assistant: one", "user: go on"]);
  });
}

test("an answer with store: false that was cut off is found nowhere", async () => {
  const { address, model } = await open();
  model.script = failsAfter("one");
  const wish: Wish = { on: "responses", say: "hi", stream: true, more: { store: false } };
  assert.equal((await look(address, idIn(await ask(address, wish)))).status, 404);
});

for (const stream of [false, true]) {
  test(`a caller that leaves cuts the connection to the model's server, stream: ${stream}`, async (context) => {
    const asked = Promise.withResolvers<void>();
    const server = await startUpstream((_, response) => {
      if (stream) {
        beginEvents(response);
        writeEvent(response, chunk({ content: "half" }));
      }
      asked.resolve();
    });
    context.after(() => server.close());
    const adapters = { model: { type: "openai", base_url: `${server.url}/v1`, api_key: "sk-upstream" } };
    const { address } = await openGateway(context, { gateway: { adapters } });
    const leave = await sendAndLeave(address, { on: "chat", say: "hi", stream });
    await asked.promise;
    const closed = once(server.sockets[0]!, "close");
    leave();
    await closed;
  });
}
