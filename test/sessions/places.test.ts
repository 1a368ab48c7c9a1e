/** What else decides a turn's place: hints, names, instructions, tips, `store`, and turns that came to nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { begin, call, endpoints, hear, tell, tellWell } from "../harness/client.ts";
import { gate, openGateway, say, seenBy, shareGateway } from "../harness/house.ts";
import { byHeader, byUser, type Hint, play, type Row } from "./script.ts";

const open = shareGateway();
const one = ["user: one", "assistant: re: one"] as const;

const instructions: readonly Row[] = [
  {
    name: "the instructions of the latest turn that had any are remembered",
    steps: [
      { send: ["system: brief", "user: one"], sees: ["system: brief", "user: one"] },
      { send: ["user: two"], sees: ["system: brief", ...one, "user: two"] },
      {
        send: ["system: long", "user: three"],
        sees: ["system: long", ...one, "user: two", "assistant: re: two", "user: three"],
      },
      {
        send: ["user: four"],
        sees: [
          "system: long",
          ...one,
          "user: two",
          "assistant: re: two",
          "user: three",
          "assistant: re: three",
          "user: four",
        ],
      },
    ],
  },
  {
    name: "instructions are no part of the talk: a history is matched whatever they say",
    steps: [
      { send: ["system: brief", "user: one"] },
      { send: ["system: long", ...one, "user: two"], sees: ["system: long", ...one, "user: two"], told: "matched" },
      {
        send: [...one, "user: two", "assistant: re: two", "user: three"],
        sees: [...one, "user: two", "assistant: re: two", "user: three"],
        told: "matched",
      },
    ],
  },
  {
    name: "where nothing is remembered instructions stay where the client put them",
    steps: [
      { send: ["user: one", "system: brief"], sees: ["user: one", "system: brief"], told: "new" },
      {
        send: ["user: one", "system: brief", "assistant: re: brief", "user: two"],
        sees: ["user: one", "system: brief", "assistant: re: brief", "user: two"],
        told: "matched",
      },
    ],
  },
  {
    name: "the instructions of a response take the place of those remembered",
    steps: [
      { send: ["system: brief", "user: one"], on: "responses" },
      {
        send: ["user: two"],
        on: "responses",
        more: { instructions: "long" },
        sees: ["instructions: long", ...one, "user: two"],
      },
    ],
  },
  {
    name: "a developer message instructs as a system message does",
    steps: [
      { send: ["developer: brief", "user: one"] },
      { send: ["user: two"], sees: ["developer: brief", ...one, "user: two"], told: "continued" },
    ],
  },
];

const named: readonly Row[] = [
  {
    name: "a named response gives its path, whatever the session's tip is",
    steps: [
      { send: ["user: one"], on: "responses" },
      { send: ["user: two"], on: "responses" },
      { send: ["user: other"], on: "responses", names: 0, sees: [...one, "user: other"], told: "continued" },
      {
        send: ["user: more"],
        on: "responses",
        names: 2,
        sees: [...one, "user: other", "assistant: re: other", "user: more"],
      },
      { send: ["user: three"], sees: [...one, "user: two", "assistant: re: two", "user: three"], told: "continued" },
    ],
  },
  {
    name: "a name of the tip moves it",
    steps: [
      { send: ["user: one"], on: "responses" },
      { send: ["user: two"], on: "responses", names: 0 },
      { send: ["user: three"], sees: [...one, "user: two", "assistant: re: two", "user: three"], told: "continued" },
    ],
  },
  {
    name: "stored system messages stay in place after a name",
    steps: [
      { send: ["system: brief", "user: one"], on: "responses" },
      {
        send: ["system: long", "user: two"],
        on: "responses",
        names: 0,
        sees: ["system: brief", ...one, "system: long", "user: two"],
      },
    ],
  },
  {
    name: "a call that nobody answered is refused after a name",
    steps: [
      { send: ["user: weather?"], answer: ["call c1: weather {}"], on: "responses" },
      { send: ["user: never mind"], on: "responses", names: 0, fails: "tool_call_mismatch" },
      {
        send: ["output c1: sunny"],
        on: "responses",
        names: 0,
        sees: ["user: weather?", "call c1: weather {}", "output c1: sunny"],
      },
    ],
  },
  {
    name: "an output without a call on the named path is refused",
    steps: [
      { send: ["user: one"], on: "responses" },
      { send: ["user: weather?"], answer: ["call c1: weather {}"], on: "responses" },
      { send: ["output c1: sunny"], on: "responses", names: 0, fails: "tool_call_mismatch" },
    ],
  },
];

const tips: readonly Row[] = [
  {
    name: "a foreign history does not move the tip of a session that is not known to show",
    steps: [
      { send: ["user: one"] },
      { send: ["user: strange", "assistant: never said", "user: x"], told: "foreign" },
      { send: ["user: two"], sees: [...one, "user: two"], told: "continued" },
    ],
  },
  {
    name: "an abandoned beginning is out of the memory once the person has gone on elsewhere",
    steps: [
      { send: ["user: one"] },
      { send: ["user: two"] },
      { send: [...one, "user: other"], told: "forked" },
      { send: ["user: fresh"], sees: ["user: fresh"], told: "new" },
    ],
  },
];

for (const on of endpoints) {
  for (const row of [...instructions, ...named, ...tips]) {
    test(`${on}: ${row.name}`, async () => play(await open(), row, on));
  }
}

const hints: readonly (readonly [string, Hint])[] = [
  ["the field user", byUser],
  ["the header X-Session-Id", byHeader("X-Session-Id")],
  ["the header X-Conversation-Id", byHeader("X-Conversation-Id")],
];

for (const [name, hint] of hints) {
  test(`${name} names one session on both endpoints`, async () => {
    const steps = [
      { send: ["user: one"], on: "chat", told: "new" },
      { send: ["user: two"], on: "responses", sees: [...one, "user: two"], told: "continued" },
      { send: [...one, "user: two", "assistant: re: two", "user: three"], on: "chat", told: "matched" },
    ] as const;
    await play(await open(), { name, steps }, "chat", hint);
  });
}

test("whoever names a session by X-OpenWebUI-Chat-Id shows its history from the first turn on", async () => {
  const steps = [
    { send: ["user: one"], sees: ["user: one"], told: "new" },
    { send: ["user: title?"], sees: ["user: title?"], told: "new" },
    { send: [...one, "user: two"], sees: [...one, "user: two"], told: "matched" },
  ];
  await play(await open(), { name: "webui", steps }, "chat", byHeader("X-OpenWebUI-Chat-Id"));
});

test("of several hints the first in the configured order counts, and an empty one does not", async () => {
  const { address, model } = await open();
  const wish = { on: "chat", more: { user: "order-user" } } as const;
  await tellWell(address, { ...wish, say: "of the header", headers: { "X-Session-Id": "order" } });
  await tellWell(address, { ...wish, say: "of the user", headers: { "X-Session-Id": "" } });
  await tellWell(address, { ...wish, say: "on", headers: { "X-Session-Id": "order", "X-Conversation-Id": "other" } });
  assert.deepEqual(
    seenBy(model.turns.at(-1)).filter((line) => line.startsWith("user")),
    ["user: of the header", "user: on"],
  );
});

test("a session says the same name on both endpoints, and it is a conversation", async () => {
  const { address } = await open();
  const more = { user: "has a conversation" };
  const first = await tellWell(address, { on: "chat", say: "one", more });
  const second = await tellWell(address, { on: "responses", say: "two", more });
  const session = first.headers.get("x-portico-session");
  assert.match(session ?? "", /^conv_/);
  assert.equal(second.headers.get("x-portico-session"), session);
  const items = await call(address, "GET", `/v1/conversations/${session}/items?order=asc`);
  assert.deepEqual(
    items.body.data.map(({ role }: { role: string }) => role),
    ["user", "assistant", "user", "assistant"],
  );
});

test("two owners under one hint never meet", async (context) => {
  const tokens = ["ann", "ben"].map((name) => ({ name, token: `sk-${name}-0123456789abcdef` }));
  const { address, model } = await openGateway(context, { http: { tokens } });
  for (const { token } of tokens) {
    const heard = await tellWell(address, { on: "chat", say: `of ${token}`, token, more: { user: "shared" } });
    assert.equal(heard.headers.get("x-portico-history"), "new");
  }
  assert.equal(model.turns.at(-1)?.items.length, 1);
});

test("without a hint chat is stateless, and a response is kept", async () => {
  const { address } = await open();
  const chat = await tellWell(address, { on: "chat", say: "hi" });
  assert.deepEqual([chat.headers.get("x-portico-history"), chat.headers.get("x-portico-session")], ["stateless", null]);
  const response = await tellWell(address, { on: "responses", say: "hi" });
  assert.equal(response.headers.get("x-portico-history"), "new");
  assert.equal((await call(address, "GET", `/v1/responses/${response.id}`)).status, 200);
});

for (const on of endpoints) {
  test(`${on}: a turn with store: false reads the session and leaves nothing in it`, async () => {
    const steps: Row["steps"] = [
      { send: ["user: one"] },
      { send: ["user: secret"], more: { store: false }, sees: [...one, "user: secret"], told: "continued" },
      { send: ["user: two"], sees: [...one, "user: two"], told: "continued" },
    ];
    await play(await open(), { name: "unstored", steps }, on);
  });

  test(`${on}: a turn that failed leaves nothing behind, before its first word or after`, async () => {
    const { address, model } = await open();
    const more = { user: `fails on ${on}` };
    await tellWell(address, { on, say: "one", more });
    model.script = async function* () {
      throw new Error("not today");
    };
    assert.equal((await tell(address, { on, say: "early", more })).status, 502);
    model.script = async function* () {
      yield say("half");
      throw new Error("broke");
    };
    assert.ok((await tell(address, { on, say: "late", stream: true, more })).error);
    model.script = [say("fine")];
    await tellWell(address, { on, say: "two", more });
    assert.deepEqual(
      seenBy(model.turns.at(-1)).filter((line) => line.startsWith("user")),
      ["user: one", "user: two"],
    );
  });

  test(`${on}: a turn whose caller left does not move the tip`, async () => {
    const { address, model } = await open();
    const more = { user: `leaves on ${on}` };
    const aborted = gate();
    model.script = [say("re: one")];
    await tellWell(address, { on, say: "one", more });
    model.script = async function* (_turn, signal) {
      yield say("half");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted.open();
    };
    const response = await begin(address, { on, say: "left", stream: true, more });
    await hear(response, "half");
    response.destroy();
    await aborted.opened;
    model.script = [say("fine")];
    await tellWell(address, { on, say: "two", more });
    assert.deepEqual(seenBy(model.turns.at(-1)), [...one, "user: two"]);
  });
}
