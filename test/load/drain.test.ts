/** SIGTERM while many streams are open: each ends as it would have, and the program ends when the last one has. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, hear, readAll, readAnswer, replyWith, startServer, type Wish } from "../harness/client.ts";
import { gate, makeFolder } from "../harness/house.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
import { beginEvents, chunk, writeEvent } from "../harness/upstream.ts";
import { until } from "../store/aid.ts";

const streams = process.env["PORTICO_LONG"] === "1" ? 200 : 100;

test("no stream and no whole answer that runs at SIGTERM is truncated, and what was answered is in its session", async (context) => {
  const [server, go] = [await startServer(context), gate()];
  server.script = async (received, response) => {
    const { stream } = received.json as { readonly stream?: boolean };
    if (!stream) {
      await go.opened;
      return replyWith(() => ({ content: "first second" }))(received, response);
    }
    beginEvents(response);
    for (const piece of ["first ", "second"]) {
      writeEvent(response, chunk({ content: piece }));
      await go.opened;
    }
    for (const event of [chunk({}, "stop"), "[DONE]"]) writeEvent(response, event);
    response.end();
  };
  const folder = makeFolder(context);
  const config = writeConfig(folder, toConfig({ gateway: { adapters: server.adapters, log: { level: "silent" } } }));
  const program = runProgram(context, folder, "start", "--config", config);
  const address = await program.address();
  const wishes = Array.from({ length: streams }, (_, index): Wish => {
    const on = index % 2 === 0 ? "chat" : "responses";
    return { on, stream: index % 10 !== 0, say: `question ${index}`, more: { user: `user-${index}` } };
  });
  const answers = wishes.map(async (wish) => {
    const response = await begin(address, wish);
    const rest = readAll(response);
    return readAnswer(wish, response.statusCode!, new Headers(response.headers as Record<string, string>), await rest);
  });
  await until(() => server.received.length >= streams);
  const ended = program.stop();
  await program.said("Draining");
  await assert.rejects(fetch(`${address}/healthz`), "it takes no new connection");
  go.open();
  for (const { text, error } of await Promise.all(answers)) {
    assert.deepEqual([text, error], ["first second", undefined]);
  }
  assert.equal((await ended).code, 0);

  const next = runProgram(context, folder, "start", "--config", config);
  const again = await next.address();
  await Promise.all(
    wishes.map(async (wish, index) => {
      const response = await begin(again, { ...wish, stream: true, say: `more ${index}` });
      assert.equal(response.headers["x-portico-history"], "continued");
      await hear(response, "[DONE]");
    }),
  );
  assert.equal((await next.stop()).code, 0);
});
