/** What a caller should know besides its answer: what a model could not take, in a header of whatever answers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, readAll, readEvents, tellWell } from "../harness/client.ts";
import { gate, openGateway, say } from "../harness/house.ts";

type Given = NonNullable<Parameters<typeof openGateway>[1]>["given"];

/** A model that reports before its first word, once the gate is open. */
function reporting(opened: Promise<void>, ...left: readonly string[]): Given {
  return {
    model: {
      async *stream(_turn, _signal, report) {
        await opened;
        for (const what of left) report?.({ type: "left-out", what });
        report?.({ type: "changed", what: "max_tokens", to: "16" });
        yield say("hi");
      },
    },
  };
}

const adapters = {};

test("what is told after heartbeats have opened the stream is sent with the stored response", async (context) => {
  const { opened, open } = gate();
  const given = reporting(opened, "tool web_search");
  const { address } = await openGateway(context, { given, gateway: { adapters }, limits: { heartbeat_ms: 10 } });
  const answer = await begin(address, { on: "responses", say: "hi", stream: true });
  assert.equal(answer.headers["x-portico-warning"], undefined);
  open();
  const [created] = readEvents(await readAll(answer));
  const stored = await call(address, "GET", `/v1/responses/${JSON.parse(created!).response.id}`);
  assert.match(stored.headers.get("x-portico-warning") ?? "", /tool web_search/);
});

test("a header has only characters that headers may have, and is of bounded length", async (context) => {
  const given = reporting(Promise.resolve(), `tool é\n${"x".repeat(100_000)}`);
  const { address } = await openGateway(context, { given, gateway: { adapters } });
  for (const on of endpoints) {
    const { headers } = await tellWell(address, { on, say: "hi" });
    const warning = headers.get("x-portico-warning") ?? "";
    assert.match(warning, /^tool [\x20-\x7e]*$/);
    assert.ok(warning.length < 10_000);
  }
});
