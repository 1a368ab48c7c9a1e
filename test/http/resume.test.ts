/** Repeated requests, resumed streams, and responses that are retrieved later, over real sockets. */
import assert from "node:assert/strict";
import { suite, test, type TestContext } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { Peers } from "../../src/core/peers.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { createPeerStores } from "../core/peer-stores.ts";
import { authorization, type Box, type BoxOptions, createBox, say, type Script, toToken, token } from "../scripted.ts";

interface Called {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function open(context: TestContext, script: Script, options: BoxOptions = {}) {
  const box: Box = createBox(context, script, options);
  const address = await box.listen();
  const send = async (path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Called> => {
    const headers = { authorization, "content-type": "application/json", ...init.headers };
    const response = await fetch(`${address}${path}`, { ...init, headers });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const post = (path: string, body: object, headers: Record<string, string> = {}): Promise<Called> =>
    send(path, { method: "POST", body: JSON.stringify(body), headers });
  return { ...box, address, send, post };
}

const chat = { model: "m", messages: [{ role: "user", content: "hi" }] };
const response = { model: "m", input: "hi" };
const words: Script = [say("Good"), say(" day"), say(", Ann")];

/** A stream's messages, each as its lines. */
function messagesOf(text: string): string[] {
  return text.split("\n\n").filter((message) => message !== "");
}

suite("a repeated request", () => {
  for (const [path, body] of [
    ["/v1/chat/completions", chat],
    ["/v1/responses", response],
  ] as const) {
    test(`gets the same answer, whole, on ${path}`, async (context) => {
      const { post, adapter } = await open(context, words);
      const headers = { "idempotency-key": "order-66" };
      const first = await post(path, body, headers);
      const second = await post(path, body, headers);
      assert.equal(first.status, 200);
      assert.equal(second.text, first.text);
      assert.equal(first.headers.get("x-portico-replayed"), null);
      assert.equal(second.headers.get("x-portico-replayed"), "true");
      assert.equal(adapter.turns.length, 1);
    });

    test(`gets the same stream on ${path}, or its rest after the last event that it names`, async (context) => {
      const { post, adapter } = await open(context, words);
      const headers = { "idempotency-key": "order-67" };
      const first = await post(path, { ...body, stream: true }, headers);
      const again = await post(path, { ...body, stream: true }, headers);
      assert.equal(again.text, first.text);
      const messages = messagesOf(first.text);
      const [, turn] = /^id: ([0-9a-f]{8})-/.exec(first.text) ?? [];
      for (const [index, message] of messages.entries()) assert.match(message, new RegExp(`^id: ${turn}-${index}\n`));
      for (let seen = 0; seen < messages.length; seen++) {
        for (const id of [`${turn}-${seen}`, String(seen)]) {
          const rest = await post(path, { ...body, stream: true }, { ...headers, "last-event-id": id });
          // The end is sent in any case, so that nobody takes silence for a lost connection.
          assert.deepEqual(messagesOf(rest.text), messages.slice(Math.min(seen + 1, messages.length - 1)));
        }
      }
      assert.equal(adapter.turns.length, 1);
    });

    test(`with another body is a conflict, on ${path}`, async (context) => {
      const { post } = await open(context, words);
      const headers = { "idempotency-key": "order-68" };
      await post(path, body, headers);
      const other = await post(path, { ...body, temperature: 0 }, headers);
      assert.equal(other.status, 409);
      assert.equal(JSON.parse(other.text).error.code, "idempotency_conflict");
    });
  }

  test("is a conflict in another session, or on the other endpoint", async (context) => {
    const { post } = await open(context, words);
    const headers = { "idempotency-key": "order-69" };
    assert.equal((await post("/v1/responses", response, headers)).status, 200);
    const elsewhere = await post("/v1/responses", response, { ...headers, "x-session-id": "s" });
    assert.equal(elsewhere.status, 409);
    assert.equal((await post("/v1/chat/completions", chat, headers)).status, 409);
  });

  test("attaches to the running turn after the first caller was disconnected", async (context) => {
    const gate = Promise.withResolvers<void>();
    const { post, address, adapter } = await open(context, async function* () {
      yield say("one");
      await gate.promise;
      yield say(" two");
    });
    const headers = { authorization, "content-type": "application/json", "idempotency-key": "order-70" };
    const cut = new AbortController();
    const body = JSON.stringify({ ...chat, stream: true });
    const first = await fetch(`${address}/v1/chat/completions`, { method: "POST", body, headers, signal: cut.signal });
    const reader = first.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    const seen = messagesOf(new TextDecoder().decode(value)).length - 1;
    cut.abort();
    await assert.rejects(async () => reader?.read());
    const resumed = post(
      "/v1/chat/completions",
      { ...chat, stream: true },
      { ...headers, "last-event-id": String(seen) },
    );
    gate.resolve();
    const rest = messagesOf((await resumed).text);
    assert.match(rest[0] ?? "", new RegExp(`^id: [0-9a-f]{8}-${seen + 1}\n`));
    assert.ok(rest.some((message) => message.includes(" two")));
    assert.match(rest.at(-1) ?? "", /\[DONE\]$/);
    assert.equal(adapter.turns.length, 1);
  });

  test("needs a key of 1 to 255 characters and a valid event id to resume from", async (context) => {
    const { post } = await open(context, words);
    for (const [body, headers] of [
      [{ ...response, stream: true }, {}],
      [response, { "idempotency-key": "k1" }],
    ] as const)
      assert.equal((await post("/v1/responses", body, { ...headers, "last-event-id": "seven" })).status, 200);
    for (const key of ["", "x".repeat(256)]) {
      const refused = await post("/v1/responses", response, { "idempotency-key": key });
      assert.equal(refused.status, 400, key);
      assert.equal(JSON.parse(refused.text).error.param, "Idempotency-Key");
    }
    for (const id of ["seven", "-1", "7x", "0123abcd-", "0123abcd-x", "0123-4", "0123abcd-1-2"]) {
      const headers = { "idempotency-key": "k", "last-event-id": id };
      const refused = await post("/v1/responses", { ...response, stream: true }, headers);
      assert.equal(refused.status, 400);
      assert.equal(JSON.parse(refused.text).error.param, "Last-Event-ID");
    }
  });

  test("begins at the beginning if the event id is empty", async (context) => {
    const { post } = await open(context, words);
    const headers = { "idempotency-key": "k" };
    const whole = await post("/v1/chat/completions", { ...chat, stream: true }, headers);
    const again = await post("/v1/chat/completions", { ...chat, stream: true }, { ...headers, "last-event-id": "" });
    assert.deepEqual([again.status, again.text], [200, whole.text]);
  });

  test("is refused when the event id is invalid, and leaves the stored answer intact", async (context) => {
    const { post, adapter } = await open(context, words);
    await post("/v1/responses", response, { "idempotency-key": "k" });
    const headers = { "idempotency-key": "k", "last-event-id": "seven" };
    const refused = await post("/v1/responses", { ...response, stream: true }, headers);
    assert.equal(refused.status, 400);
    assert.equal((await post("/v1/responses", response, { "idempotency-key": "k" })).status, 200);
    assert.equal(adapter.turns.length, 1);
  });

  test("resumes only the answer that was cut off, never another one", async (context) => {
    const { post, adapter } = await open(context, words);
    const headers = { "idempotency-key": "k", "last-event-id": "2" };
    const refused = await post("/v1/chat/completions", { ...chat, stream: true }, headers);
    assert.equal(refused.status, 400);
    assert.equal(JSON.parse(refused.text).error.code, "events_expired");
    assert.equal(JSON.parse(refused.text).error.param, "Last-Event-ID");
    assert.equal(adapter.turns.length, 0);
  });

  test("does not resume an attempt that failed with the answer of another one", async (context) => {
    let attempts = 0;
    const gate = Promise.withResolvers<void>();
    const { post } = await open(context, async function* () {
      yield say(attempts === 0 ? "Bad" : "Good");
      if (attempts++ === 0) throw new GatewayError("adapter_error", "down");
      await gate.promise;
      yield say(" day");
    });
    const send = (headers: object) =>
      post("/v1/chat/completions", { ...chat, stream: true }, { "idempotency-key": "k", ...headers });
    const [id = ""] = /(?<=^id: ).*/.exec((await send({})).text) ?? [];
    const second = send({});
    const refused = await send({ "last-event-id": id });
    assert.equal(refused.status, 400);
    assert.equal(JSON.parse(refused.text).error.code, "events_expired");
    gate.resolve();
    assert.match((await second).text, /" day"/);
  });
});

test("a chat turn that cannot be requested again is stored without its events", async (context) => {
  const { post, store } = await open(context, words);
  const storedTurnOf = async (headers: Record<string, string>) => {
    const { id } = JSON.parse((await post("/v1/chat/completions", { ...chat, user: "ann" }, headers)).text);
    return store.findTurn("default", id.replace("chatcmpl-", "resp_"));
  };
  const plain = await storedTurnOf({});
  assert.equal(plain?.output.length, 1);
  assert.equal(plain?.told, undefined);
  assert.deepEqual((await storedTurnOf({ "idempotency-key": "order-71" }))?.told?.pieces?.length, 1);
});

suite("a response that is retrieved later", () => {
  test("is the one that was answered, whole and as a stream from any event on", async (context) => {
    const { post, send } = await open(context, words);
    const streamed = await post("/v1/responses", { ...response, stream: true, metadata: { a: "b" } });
    const messages = messagesOf(streamed.text);
    const last = JSON.parse((messages.at(-2) ?? "").replace(/^event: .*\ndata: /, ""));
    const { id } = last.response;
    assert.deepEqual(JSON.parse((await send(`/v1/responses/${id}`)).text), last.response);
    for (const yes of ["true", "True", "1"]) {
      assert.equal((await send(`/v1/responses/${id}?stream=${yes}`)).text, streamed.text);
    }
    for (const no of ["false", "False", "0", ""]) {
      assert.deepEqual(JSON.parse((await send(`/v1/responses/${id}?stream=${no}`)).text), last.response);
    }
    for (const after of [0, 3, messages.length - 1, 9_999]) {
      const rest = await send(`/v1/responses/${id}?stream=true&starting_after=${after}`);
      assert.deepEqual(messagesOf(rest.text), messages.slice(Math.min(after + 1, messages.length - 1)));
    }
    assert.equal((await send(`/v1/responses/${id}?stream=true&starting_after=`)).text, streamed.text);
    for (const after of ["-1", "1x"]) {
      const wrong = await send(`/v1/responses/${id}?stream=true&starting_after=${after}`);
      assert.equal(JSON.parse(wrong.text).error.param, "starting_after");
    }
    for (const query of ["stream=maybe", "stream=true&stream=false"]) {
      const unclear = await send(`/v1/responses/${id}?${query}`);
      assert.equal(unclear.status, 400);
      assert.equal(JSON.parse(unclear.text).error.param, "stream");
    }
  });

  test("is not found after it was deleted, or if it was not stored", async (context) => {
    const { post, send } = await open(context, words);
    const { id } = JSON.parse((await post("/v1/responses", response)).text);
    const deleted = await send(`/v1/responses/${id}`, { method: "DELETE" });
    assert.deepEqual(JSON.parse(deleted.text), { id, object: "response", deleted: true });
    assert.equal((await send(`/v1/responses/${id}`)).status, 404);
    assert.equal((await send(`/v1/responses/${id}`, { method: "DELETE" })).status, 404);
    const continued = await post("/v1/responses", { ...response, previous_response_id: id });
    assert.equal(JSON.parse(continued.text).error.code, "previous_response_not_found");
    const unstored = JSON.parse((await post("/v1/responses", { ...response, store: false })).text);
    assert.equal((await send(`/v1/responses/${unstored.id}`)).status, 404);
  });

  test("is answered like an unknown one if it has another owner", async (context) => {
    const tokens = [toToken(token), toToken("sk-other-0123456789", { owner: "other" })];
    const { post, send } = await open(context, words, { settings: { tokens } });
    const { id } = JSON.parse((await post("/v1/responses", response)).text);
    const unknown = `resp_${"0".repeat(48)}`;
    const headers = { authorization: "Bearer sk-other-0123456789" };
    const ways = [
      ["GET", (name: string) => `/v1/responses/${name}`],
      ["GET", (name: string) => `/v1/responses/${name}?stream=true`],
      ["DELETE", (name: string) => `/v1/responses/${name}`],
      ["POST", (name: string) => `/v1/responses/${name}/cancel`],
    ] as const;
    for (const [method, path] of ways) {
      const theirs = await send(path(id), { method, headers });
      const nobodys = await send(path(unknown), { method, headers });
      assert.equal(theirs.status, 404);
      assert.equal(theirs.text.replaceAll(id, "X"), nobodys.text.replaceAll(unknown, "X"));
    }
    assert.equal((await send(`/v1/responses/${id}`)).status, 200);
  });

  test("is not found if it was created as a chat completion, and cannot be deleted", async (context) => {
    const { post, send, store } = await open(context, words);
    const { id } = JSON.parse((await post("/v1/chat/completions", { ...chat, store: true })).text);
    const name = id.replace("chatcmpl-", "resp_");
    for (const method of ["GET", "DELETE"]) {
      assert.equal((await send(`/v1/responses/${name}`, { method })).status, 404);
    }
    assert.equal((await store.findTurn("default", name))?.id, name);
  });

  test("cannot be cancelled if it was answered synchronously", async (context) => {
    const { post, send } = await open(context, words);
    const { id } = JSON.parse((await post("/v1/responses", response)).text);
    const refused = await send(`/v1/responses/${id}/cancel`, { method: "POST" });
    assert.equal(refused.status, 400);
    assert.equal(JSON.parse(refused.text).error.message, "Cannot cancel a synchronous response.");
  });
});

suite("a background response", () => {
  test("has its session headers in the first answer, unless it waits for another turn", async (context) => {
    const opened = Promise.withResolvers<void>();
    const { post, send } = await open(context, async function* () {
      await opened.promise;
      yield say("Good day");
    });
    const ask = () => post("/v1/responses", { ...response, user: "ann", background: true });
    const placeHeaders = ({ headers }: Called) =>
      ["session", "history", "context"].map((name) => headers.get(`x-portico-${name}`));
    const first = await ask();
    const waiting = await ask();
    assert.deepEqual(placeHeaders(first).slice(1), ["new", "1 items"]);
    assert.deepEqual(placeHeaders(waiting), [null, null, null]);
    opened.resolve();
    const events = await send(`/v1/responses/${JSON.parse(first.text).id}?stream=true`);
    assert.deepEqual(placeHeaders(events), placeHeaders(first));
  });

  test("is queued at once, polled, and followed from any event on", async (context) => {
    const gate = Promise.withResolvers<void>();
    const { post, send } = await open(context, async function* () {
      yield say("one");
      await gate.promise;
      yield say(" two");
    });
    const promised = JSON.parse((await post("/v1/responses", { ...response, background: true })).text);
    assert.equal(promised.status, "queued");
    assert.equal(promised.background, true);
    assert.deepEqual(promised.output, []);
    const following = send(`/v1/responses/${promised.id}?stream=true&starting_after=1`);
    gate.resolve();
    const messages = messagesOf((await following).text);
    assert.match(messages[0] ?? "", /^event: response.in_progress\n.*"sequence_number":2}$/m);
    assert.match(messages.at(-2) ?? "", /^event: response.completed\n/);
    const polled = JSON.parse((await send(`/v1/responses/${promised.id}`)).text);
    assert.equal(polled.status, "completed");
    assert.equal(polled.output[0].content[0].text, "one two");
  });

  test("can be streamed by the request itself, beginning with response.queued", async (context) => {
    const { post } = await open(context, words);
    const streamed = await post("/v1/responses", { ...response, background: true, stream: true });
    const types = messagesOf(streamed.text).map((message) => /^event: (.*)$/m.exec(message)?.[1]);
    assert.deepEqual(types.slice(0, 3), ["response.created", "response.queued", "response.in_progress"]);
    assert.equal(types.at(-2), "response.completed");
  });

  test("releases the model when it is cancelled, and stays cancelled", async (context) => {
    const begun = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const { post, send } = await open(context, async function* (_turn, signal) {
      yield say("one");
      begun.resolve();
      await new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          gone.resolve();
          reject(signal.reason);
        }),
      );
    });
    const { id } = JSON.parse((await post("/v1/responses", { ...response, background: true })).text);
    await begun.promise;
    const running = JSON.parse((await send(`/v1/responses/${id}`)).text);
    assert.equal(running.status, "in_progress");
    for (let times = 0; times < 2; times++) {
      const cancelled = await send(`/v1/responses/${id}/cancel`, { method: "POST" });
      assert.equal(JSON.parse(cancelled.text).status, "cancelled");
    }
    await gone.promise;
    assert.equal(JSON.parse((await send(`/v1/responses/${id}`)).text).status, "cancelled");
  });
});

test("a response that was interrupted with its gateway is resumed with its end, from any event on", async (context) => {
  const store = createMemoryStore();
  const hanging: Script = async function* () {
    yield say("Good");
    await new Promise(() => {});
  };
  const before = await open(context, hanging, { store, limits: { drainTimeoutMs: 0 } });
  const { id } = JSON.parse((await before.post("/v1/responses", { ...response, background: true })).text);
  await store.endRunning({ code: "interrupted", message: "It was stopped." }, new Date());
  const { send } = await open(context, words, { store });
  const whole = messagesOf((await send(`/v1/responses/${id}?stream=true`)).text);
  assert.deepEqual(
    whole.map((message) => /^(?:event: (.*)|data: (.*))/.exec(message)?.slice(1).join("")),
    ["response.created", "response.queued", "response.in_progress", "error", "response.failed", "[DONE]"],
  );
  for (const after of [0, 1, 2, 3, 4, 5, 99]) {
    const rest = await send(`/v1/responses/${id}?stream=true&starting_after=${after}`);
    assert.deepEqual(messagesOf(rest.text), whole.slice(Math.min(after, 2) + 1));
  }
});

test("a client that has received the end of an interrupted response does not get it again", async (context) => {
  const { post, send } = await open(context, async function* () {
    yield say("Good");
    throw new GatewayError("interrupted", "Nobody followed it.");
  });
  const { id } = JSON.parse((await post("/v1/responses", { ...response, background: true })).text);
  const whole = messagesOf((await send(`/v1/responses/${id}?stream=true`)).text);
  for (const after of [whole.length - 4, whole.length - 2]) {
    const rest = await send(`/v1/responses/${id}?stream=true&starting_after=${after}`);
    assert.deepEqual(messagesOf(rest.text), whole.slice(after + 1));
  }
});

for (const [path, body, failure] of [
  ["/v1/chat/completions", chat, /^data: \{"error":/m],
  ["/v1/responses", response, /^event: response\.failed$/m],
] as const) {
  test(`a client that has received more than the peers of a crashed gateway gets a failure, on ${path}`, async (context) => {
    const join = createPeerStores();
    const [one, other] = [join(), join()];
    const hanging: Script = async function* () {
      for (const word of words) yield word;
      await new Promise(() => {});
    };
    const { publish } = one.store.peers!;
    const { subscribe } = other.store.peers!;
    const isSubscribed = Promise.withResolvers<void>();
    // It crashes when it has sent its caller everything, but its peers only the beginning.
    let isFirst = true;
    const publishOnce: Peers["publish"] = (name, events) => {
      if (isFirst) publish(name, events);
      isFirst = false;
    };
    const subscribeAndNote: Peers["subscribe"] = async function* (name, signal) {
      for await (const events of subscribe(name, signal)) {
        isSubscribed.resolve();
        yield events;
      }
    };
    const limits = { drainTimeoutMs: 0 };
    const before = await open(context, hanging, {
      store: { ...one.store, peers: { ...one.store.peers!, publish: publishOnce } },
      limits,
    });
    const after = await open(context, words, {
      store: { ...other.store, peers: { ...other.store.peers!, subscribe: subscribeAndNote } },
      limits,
    });
    const headers = { authorization, "content-type": "application/json", "idempotency-key": "order-68" };
    const init = { method: "POST", body: JSON.stringify({ ...body, user: "ann", stream: true }) };
    const stream = (await fetch(`${before.address}${path}`, { ...init, headers })).body!.pipeThrough(
      new TextDecoderStream(),
    );
    let received = "";
    for await (const text of stream) if ((received += text).includes(", Ann")) break;
    const last = /^id: (.*)$/m.exec(messagesOf(received).at(-1)!)![1]!;
    const resumed = fetch(`${after.address}${path}`, { ...init, headers: { ...headers, "last-event-id": last } });
    await isSubscribed.promise;
    one.die();
    const rest = await (await resumed).text();
    assert.match(rest, failure);
    assert.match(rest, /^data: \[DONE\]$/m);
  });
}
