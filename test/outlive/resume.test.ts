/** A stream that was cut is resumed after the last event that its reader has, byte for byte, by any number of readers. */
import assert from "node:assert/strict";
import { get, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { begin, call, endpoints, hear, readAll, type Wish } from "../harness/client.ts";
import {
  authorization,
  call as callTool,
  makeFolder,
  openGateway,
  operatorToken,
  say,
  shareGateway,
  usage,
  type Script,
} from "../harness/house.ts";
import {
  ask,
  askWell,
  ended,
  eventsOf,
  failsAfter,
  hold,
  idIn,
  idsOf,
  keyed,
  look,
  messagesOf,
  promise,
  remove,
  textIn,
  withoutIds,
} from "./outlive.ts";

const open = shareGateway({ limits: { drain_timeout_ms: 0 } });

const answers: Readonly<Record<string, Script>> = {
  "a text": [say("Good"), say(" day", ", Ann"), [{ type: "usage", usage }]],
  "an empty answer": [[{ type: "finish", reason: "stop" }]],
  "reasoning and a text": [
    [{ type: "reasoning", text: "Let me" }],
    [{ type: "reasoning", text: " think" }, ...say("So.")],
  ],
  "parallel calls": [callTool("call_a", "look", '{"a":1}'), callTool("call_b", "ask", "{}", 1)],
  "a refusal": [[{ type: "refusal", text: "I will" }], [{ type: "refusal", text: " not" }]],
  "a text that was too long": [say("Half", " a"), [{ type: "finish", reason: "length" }]],
  "a failure after some words": failsAfter("Half", " a"),
  "a failure before the first word": failsAfter(),
};

const tools = ["look", "ask"].map((name) => ({ type: "function", name, parameters: { type: "object" } }));

/** The messages after that one. The end is always told, so that no reader takes silence for a lost connection. */
function after(index: number, messages: readonly string[]): readonly string[] {
  return messages.slice(Math.min(index + 1, messages.length - 1));
}

for (const [name, script] of Object.entries(answers)) {
  test(`${name}, told in the background, is followed from any event on`, async () => {
    const { address, model } = await open();
    model.script = script;
    const more = { background: true, tools };
    const messages = messagesOf((await askWell(address, { on: "responses", say: "hi", stream: true, more })).raw);
    const id = idIn({ raw: messages[0]! });
    assert.deepEqual(messagesOf((await look(address, id, "?stream=true")).raw), messages);
    for (let index = 0; index < messages.length - 1; index++) {
      const { raw } = await look(address, id, `?stream=true&starting_after=${index}`);
      assert.deepEqual(messagesOf(raw), after(index, messages));
    }
    const { response } = eventsOf(messages.join("\n\n")).at(-1)!;
    const { output, status, usage: used } = (await look(address, id)).body;
    assert.deepEqual([output, status, used], [response.output, response.status, response.usage]);
  });
}

for (const [name, script] of Object.entries(answers).filter(([name]) => !name.includes("failure"))) {
  for (const on of endpoints) {
    test(`${on}: ${name}, told to a caller with a key, is resumed after any Last-Event-ID`, async () => {
      const { address, model } = await open();
      model.script = script;
      const asked = model.turns.length;
      const wish: Wish = { on, say: "hi", stream: true };
      const key = `${on} ${name}`.replaceAll(" ", "-");
      const { raw } = await askWell(address, keyed(wish, key));
      const messages = messagesOf(raw);
      const ids = idsOf(raw);
      assert.equal(new Set(ids).size, messages.length);
      for (const [index, id] of ids.slice(0, -1).entries()) {
        const rest = await askWell(address, keyed(wish, key, { "last-event-id": id }));
        assert.deepEqual(messagesOf(rest.raw), after(index, messages));
      }
      assert.equal(model.turns.length, asked + 1);
      if (on === "chat") return;
      const followed = await look(address, idIn({ raw }), "?stream=true&starting_after=2");
      assert.deepEqual(messagesOf(withoutIds(followed.raw)), after(2, messages).map(withoutIds));
    });
  }
}

for (const on of endpoints) {
  test(`${on}: a caller whose stream is cut resumes it while its turn runs, and misses and repeats nothing`, async () => {
    const { address, model } = await open();
    const held = hold();
    model.script = held.script;
    const asked = model.turns.length;
    const wish = keyed({ on, say: "hi", stream: true }, `cut-${on}`);
    const cut = await begin(address, wish);
    const heard = messagesOf((await hear(cut, "one")).replace(/\n\n(?!.*\n\n).*$/s, "\n\n"));
    cut.destroy();
    const rest = await begin(address, keyed(wish, `cut-${on}`, { "last-event-id": idsOf(heard.join("\n\n")).at(-1)! }));
    held.go();
    const told = messagesOf(await readAll(rest));
    assert.deepEqual([...heard, ...told], messagesOf((await askWell(address, wish)).raw));
    assert.equal(model.turns.length, asked + 1);
  });

  test(`${on}: the end of one answer never follows the beginning of another`, async () => {
    const { address, model } = await open();
    model.script = failsAfter("half");
    const wish: Wish = { on, say: "hi", stream: true };
    const [id = ""] = idsOf((await askWell(address, keyed(wish, `other-${on}`))).raw);
    model.script = [say("another")];
    const asked = model.turns.length;
    const early = await ask(address, keyed(wish, `other-${on}`, { "last-event-id": id }));
    assert.equal(model.turns.length, asked, "none is begun for it");
    await askWell(address, keyed(wish, `other-${on}`));
    const late = await ask(address, keyed(wish, `other-${on}`, { "last-event-id": id }));
    const unknown = await ask(address, keyed(wish, `unknown-${on}`, { "last-event-id": id }));
    for (const { status, body } of [early, late, unknown]) {
      assert.deepEqual([status, body.error.code, body.error.param], [400, "events_expired", "Last-Event-ID"]);
    }
  });

  test(`${on}: a Last-Event-ID that is none is refused, and the key's answer stays`, async () => {
    const { address, model } = await open();
    model.script = [say("Good day")];
    const wish: Wish = { on, say: "hi", stream: true };
    const first = await askWell(address, keyed(wish, `none-${on}`));
    for (const id of ["seven", "-1", "0123abcd-x"]) {
      const { status, body } = await ask(address, keyed(wish, `none-${on}`, { "last-event-id": id }));
      assert.deepEqual([status, body.error.param], [400, "Last-Event-ID"]);
    }
    assert.equal((await askWell(address, keyed(wish, `none-${on}`, { "last-event-id": "" }))).raw, first.raw);
    // Without a key there is nothing to resume: some clients send the header with every request.
    await askWell(address, { ...wish, headers: { "last-event-id": "seven" } });
  });
}

test("many readers follow a running turn, each from where it left off, and all are told its end", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const id = await promise(address);
  await held.begun;
  const readers = await Promise.all(
    Array.from({ length: 12 }, (_, reader) => follow(address, id, `starting_after=${reader % 5}`)),
  );
  held.go();
  const whole = messagesOf((await look(address, id, "?stream=true")).raw);
  for (const [reader, stream] of readers.entries()) {
    assert.deepEqual(messagesOf(await readAll(stream)), after(reader % 5, whole));
  }
});

test("a reader that leaves a background turn does not stop it", async () => {
  const { address, model } = await open();
  const held = hold();
  model.script = held.script;
  const streaming = await begin(address, { on: "responses", say: "hi", stream: true, more: { background: true } });
  const id = idIn({ raw: await hear(streaming, "one") });
  const other = await follow(address, id, "");
  for (const stream of [streaming, other]) stream.destroy();
  await call(address, "GET", "/v1/models");
  held.go();
  assert.equal((await ended(address, id)).output[0].content[0].text, "one two");
});

test("a foreground response is followed by its id, too, from its beginning", async () => {
  const { address, model } = await open();
  model.script = [say("Good"), say(" day")];
  const { body } = await askWell(address, { on: "responses", say: "hi" });
  for (const yes of ["true", "True"]) {
    const events = eventsOf((await look(address, body.id, `?stream=${yes}`)).raw);
    assert.deepEqual(events.at(-1)?.response, body);
  }
  assert.deepEqual((await look(address, body.id, "?stream=false")).body, body);
});

test("a wrong stream or starting_after is refused by its name", async () => {
  const { address, model } = await open();
  model.script = [say("Good day")];
  const { body } = await askWell(address, { on: "responses", say: "hi" });
  for (const [query, param] of [
    ["stream=maybe", "stream"],
    ["stream=true&starting_after=-1", "starting_after"],
    ["stream=true&starting_after=1x", "starting_after"],
  ]) {
    const refused = await look(address, body.id, `?${query}`);
    assert.deepEqual([refused.status, refused.body.error.param], [400, param]);
  }
});

test("a stream is not followed by another owner, nor after it was deleted", async (context) => {
  const tokens = [{ name: "bob", token: "sk-bob-0123456789" }];
  const { address } = await openGateway(context, { http: { tokens } });
  const id = await promise(address);
  const { raw } = await look(address, id, "?stream=true");
  const bobs = await call(address, "GET", `/v1/responses/${id}?stream=true`, undefined, { token: tokens[0]!.token });
  assert.equal(bobs.status, 404);
  assert.equal((await look(address, id, "?stream=true")).raw, raw);
  await remove(address, id);
  assert.equal((await look(address, id, "?stream=true&starting_after=2")).status, 404);
});

test("streams are resumed after a restart, byte for byte; a day later they are told whole", async (context) => {
  const folder = makeFolder(context);
  let atMs = Date.parse("2030-01-01T00:00:00Z");
  const options = { folder, now: () => new Date(atMs), gateway: { sessions: { idempotency_ttl: "30d" } } };
  const before = await openGateway(context, options);
  const told = new Map<string, readonly string[]>();
  for (const script of Object.values(answers)) {
    before.model.script = script;
    const id = await promise(before.address, { tools });
    told.set(id, messagesOf((await look(before.address, id, "?stream=true")).raw));
  }
  before.model.script = answers["a text"]!;
  const wishes = endpoints.map((on) => keyed({ on, say: "hi", stream: true }, `restarted-${on}`));
  const streams: string[] = [];
  for (const wish of wishes) streams.push((await askWell(before.address, wish)).raw);
  await before.close();

  atMs += 23 * 3_600_000;
  const later = await openGateway(context, options);
  for (const [id, messages] of told) {
    for (const index of [0, 3, messages.length - 2]) {
      const { raw } = await look(later.address, id, `?stream=true&starting_after=${index}`);
      assert.deepEqual(messagesOf(raw), after(index, messages));
    }
  }
  for (const [index, wish] of wishes.entries()) {
    const raw: string = streams[index]!;
    const rest = await askWell(later.address, {
      ...wish,
      headers: { ...wish.headers, "last-event-id": idsOf(raw)[2]! },
    });
    assert.deepEqual(messagesOf(rest.raw), after(2, messagesOf(raw)));
  }
  await later.close();

  atMs += 2 * 3_600_000;
  const { address } = await openGateway(context, options);
  await call(address, "POST", "/operator/prune", undefined, { token: operatorToken });
  for (const [id, messages] of told) {
    const last = eventsOf(messages.join("\n\n")).at(-1)!;
    const events = eventsOf((await look(address, id, "?stream=true")).raw);
    assert.deepEqual([events.at(-1)?.type, events.at(-1)?.response], [last.type, last.response]);
    assert.deepEqual((await look(address, id)).body.output, last.response.output);
  }
  for (const [index, wish] of wishes.entries()) {
    const [id = ""] = idsOf(streams[index]!);
    const { status, body } = await ask(address, { ...wish, headers: { ...wish.headers, "last-event-id": id } });
    assert.deepEqual([status, body.error.code, body.error.param], [400, "events_expired", "Last-Event-ID"]);
    assert.equal(textIn(wish, await askWell(address, wish)), "Good day, Ann");
  }
});

/** The stream of a response, as soon as its head is there. */
function follow(address: string, id: string, query: string) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const path = `${address}/v1/responses/${id}?stream=true&${query}`;
    get(path, { headers: { authorization } }, resolve).on("error", reject);
  });
}
