import assert from "node:assert/strict";
import { once } from "node:events";
import { request as send } from "node:http";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import { authorization, type Box, createBox, say } from "../scripted.ts";

const headers = { authorization, "content-type": "application/json" };
const ask = { model: "m", messages: [{ role: "user", content: "hi" }] };

interface Line {
  readonly status: number;
  readonly path: string;
  readonly code?: string;
  readonly model?: string;
  readonly history?: string;
  readonly owner?: string;
}

/** The lines of requests, once there are so many. */
async function lines(box: Box, count: number): Promise<readonly Line[]> {
  for (;;) {
    const found = box.logged.filter(({ message }) => message === "request").map(({ fields }) => fields as Line);
    if (found.length >= count) return found;
    await new Promise(setImmediate);
  }
}

test("every request leaves one line, which says what became of it", async (context) => {
  const box = createBox(context, [say("hi")]);
  const address = await box.listen();
  await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify({ ...ask, user: "u" }),
  });
  const [line] = await lines(box, 1);
  const { status, path, model, history, owner } = line!;
  assert.deepEqual(
    { status, path, model, history, owner },
    { status: 200, path: "/v1/chat/completions", model: "m", history: "new", owner: "default" },
  );
  assert.doesNotMatch(JSON.stringify(box.logged), /sk-test|"u"/);
});

test("a stream that fails on its way is logged with its code and its cause", async (context) => {
  const box = createBox(context, async function* () {
    yield say("half");
    throw new GatewayError("adapter_error", "broke", { cause: new Error("the wire was cut") });
  });
  const address = await box.listen();
  const body = JSON.stringify({ ...ask, stream: true });
  await (await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body })).text();
  const [line] = await lines(box, 1);
  assert.equal(line?.status, 200);
  assert.equal(line?.code, "adapter_error");
  const failure = box.logged.find(({ level }) => level === "error")!;
  assert.match(String((failure.fields as { err: Error }).err), /the wire was cut/);
});

test("a caller who leaves is logged as 499", async (context) => {
  const started = Promise.withResolvers<void>();
  const box = createBox(context, async function* (_turn, signal) {
    started.resolve();
    await once(signal, "abort");
    yield say("too late");
  });
  const request = send(`${await box.listen()}/v1/chat/completions`, { method: "POST", headers });
  request.on("error", () => {});
  request.end(JSON.stringify(ask));
  await started.promise;
  request.destroy();
  assert.equal((await lines(box, 1))[0]?.status, 499);
});

test("a query, which may hold a secret, is not logged", async (context) => {
  const box = createBox(context, [say("hi")]);
  await fetch(`${await box.listen()}/v1/nope?api_key=sk-secret`, { headers });
  assert.equal((await lines(box, 1))[0]?.path, "/v1/nope");
  assert.doesNotMatch(JSON.stringify(box.logged), /secret/);
});
