/**
 * What belongs to one owner does not exist for another: every request for it is answered as if it had never existed.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { suite, test, type TestContext } from "node:test";
import { authorization, createBox, say, token, toToken } from "../scripted.ts";
import { dial } from "./websocket-client.ts";

const stranger = "Bearer sk-other-0123456789abcdef";
const tokens = [toToken(token), toToken(stranger.slice("Bearer ".length), { owner: "other" })];

/** Everything that has an id. */
interface Names {
  readonly response: string;
  readonly running: string;
  readonly item: string;
  readonly asked: string;
  readonly conversation: string;
  readonly added: string;
  /** A conversation of the other owner. */
  readonly own: string;
}

type Row = readonly [name: string, request: (names: Names) => readonly [method: string, path: string, body?: object]];

const create = { model: "m", input: "hi" };
const refer = (id: string) => [{ type: "item_reference", id }];

const rows: readonly Row[] = [
  ["a response is retrieved", ({ response }) => ["GET", `/responses/${response}`]],
  ["a running response is retrieved", ({ running }) => ["GET", `/responses/${running}`]],
  ["a response is followed", ({ response }) => ["GET", `/responses/${response}?stream=true`]],
  ["a running response is followed", ({ running }) => ["GET", `/responses/${running}?stream=true&starting_after=0`]],
  ["a response is deleted", ({ response }) => ["DELETE", `/responses/${response}`]],
  ["a running response is deleted", ({ running }) => ["DELETE", `/responses/${running}`]],
  ["a response is cancelled", ({ response }) => ["POST", `/responses/${response}/cancel`, {}]],
  ["a running response is cancelled", ({ running }) => ["POST", `/responses/${running}/cancel`, {}]],
  ["the input of a response is listed", ({ response }) => ["GET", `/responses/${response}/input_items`]],
  ["a response is continued", ({ response }) => ["POST", "/responses", { ...create, previous_response_id: response }]],
  [
    "a running response is continued",
    ({ running }) => ["POST", "/responses", { ...create, previous_response_id: running, stream: true }],
  ],
  [
    "a response is continued in the background",
    ({ response }) => ["POST", "/responses", { ...create, previous_response_id: response, background: true }],
  ],
  [
    "a response is compacted",
    ({ response }) => ["POST", "/responses/compact", { model: "m", previous_response_id: response }],
  ],
  [
    "the tokens of a response are counted",
    ({ response }) => ["POST", "/responses/input_tokens", { ...create, previous_response_id: response }],
  ],
  ["an output item is referenced", ({ item }) => ["POST", "/responses", { model: "m", input: refer(item) }]],
  ["an input item is referenced", ({ asked }) => ["POST", "/responses", { model: "m", input: refer(asked) }]],
  ["an added item is referenced", ({ added }) => ["POST", "/responses", { model: "m", input: refer(added) }]],
  [
    "an item is referenced in a compaction",
    ({ item }) => ["POST", "/responses/compact", { model: "m", input: refer(item) }],
  ],
  [
    "an item is referenced when tokens are counted",
    ({ item }) => ["POST", "/responses/input_tokens", { model: "m", input: refer(item) }],
  ],
  ["an item is referenced in a new conversation", ({ item }) => ["POST", "/conversations", { items: refer(item) }]],
  [
    "an item is referenced in the caller's own conversation",
    ({ own, item }) => ["POST", `/conversations/${own}/items`, { items: refer(item) }],
  ],
  [
    "an item is retrieved from the caller's own conversation",
    ({ own, added }) => ["GET", `/conversations/${own}/items/${added}`],
  ],
  [
    "an item is deleted from the caller's own conversation",
    ({ own, added }) => ["DELETE", `/conversations/${own}/items/${added}`],
  ],
  ["a page starts after an item", ({ own, added }) => ["GET", `/conversations/${own}/items?after=${added}`]],
  ["a conversation is retrieved", ({ conversation }) => ["GET", `/conversations/${conversation}`]],
  ["a conversation is changed", ({ conversation }) => ["POST", `/conversations/${conversation}`, { metadata: {} }]],
  ["a conversation is deleted", ({ conversation }) => ["DELETE", `/conversations/${conversation}`]],
  ["a conversation is listed", ({ conversation }) => ["GET", `/conversations/${conversation}/items`]],
  [
    "items are added to a conversation",
    ({ conversation }) => ["POST", `/conversations/${conversation}/items`, { items: [{ role: "user", content: "x" }] }],
  ],
  [
    "an item of a conversation is retrieved",
    ({ conversation, added }) => ["GET", `/conversations/${conversation}/items/${added}`],
  ],
  [
    "an item of a conversation is deleted",
    ({ conversation, added }) => ["DELETE", `/conversations/${conversation}/items/${added}`],
  ],
  ["a conversation is continued", ({ conversation }) => ["POST", "/responses", { ...create, conversation }]],
  [
    "the tokens of a conversation are counted",
    ({ conversation }) => ["POST", "/responses/input_tokens", { ...create, conversation }],
  ],
];

suite("another owner's id is answered like an unknown one when", () => {
  for (const [name, toRequest] of rows) {
    test(name, async (context) => {
      const { names, send } = await open(context);
      const theirs = await send(stranger, ...toRequest(names));
      const nobodys = await send(stranger, ...toRequest(toUnknown(names)));
      assert.match(theirs.text, /"code":"(not_found|previous_response_not_found)"/);
      assert.equal(theirs.status, theirs.text.includes("previous_response_not_found") ? 400 : 404);
      assert.deepEqual(normalise(theirs, names), normalise(nobodys, names));
      await checkUntouched(names, send);
    });
  }
});

test("another owner's id is answered like an unknown one over a WebSocket connection too", async (context) => {
  const { names, send, address } = await open(context);
  const client = await dial(context, address, { authorization: stranger });
  for (const toFields of [
    ({ response }: Names) => ({ previous_response_id: response }),
    ({ running }: Names) => ({ previous_response_id: running }),
    ({ response }: Names) => ({ previous_response_id: response, store: false }),
    ({ response }: Names) => ({ previous_response_id: response, generate: false }),
    ({ conversation }: Names) => ({ conversation }),
    ({ conversation }: Names) => ({ conversation, generate: false }),
    ({ item }: Names) => ({ input: refer(item) }),
  ]) {
    const answers: string[] = [];
    for (const given of [names, toUnknown(names)]) {
      client.create(toFields(given));
      answers.push(JSON.stringify(await client.answer()));
    }
    const [theirs = "", nobodys] = answers;
    assert.match(theirs, /^\[\{"type":"error","status":(400|404),.*not_found/);
    assert.equal(normaliseText(theirs, names), nobodys);
  }
  await checkUntouched(names, send);
});

interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly text: string;
}

/** One owner with a response, a running response, and a conversation. */
async function open(context: TestContext) {
  const box = createBox(
    context,
    async function* (_, signal) {
      yield say("secret");
      if (box.adapter.turns.length === 2) await once(signal, "abort");
      signal.throwIfAborted();
    },
    { settings: { tokens } },
  );
  const address = await box.listen();
  const send = async (bearer: string, method: string, path: string, body?: object): Promise<Answer> => {
    const answer = await fetch(`${address}/v1${path}`, {
      method,
      headers: { authorization: bearer, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, headers: [...answer.headers.keys()], text: await answer.text() };
  };
  const make = async (path: string, body: object, bearer = authorization) =>
    JSON.parse((await send(bearer, "POST", path, body)).text);
  const response = await make("/responses", create);
  const running = await make("/responses", { ...create, background: true });
  const conversation = await make("/conversations", { items: [{ role: "user", content: "secret" }] });
  const own = await make("/conversations", { items: [{ role: "user", content: "mine" }] }, stranger);
  const firstOf = async (path: string) => JSON.parse((await send(authorization, "GET", path)).text).first_id;
  const names: Names = {
    response: response.id,
    running: running.id,
    item: response.output[0].id,
    asked: await firstOf(`/responses/${response.id}/input_items`),
    conversation: conversation.id,
    added: await firstOf(`/conversations/${conversation.id}/items`),
    own: own.id,
  };
  return { names, send, address };
}

/** Ids of the same form that do not exist. */
function toUnknown(names: Names): Names {
  const known = Object.entries(names).map(([key, name]) => [key, key === "own" ? name : normaliseText(name, names)]);
  return Object.fromEntries(known) as Names;
}

function normalise({ status, headers, text }: Answer, names: Names): Answer {
  return { status, headers, text: normaliseText(text, names) };
}

/** Replaces every digit of an id by 0, unless it is the other owner's. */
function normaliseText(text: string, { own }: Names): string {
  return text.replaceAll(/[0-9a-f]{48}/g, (digits) => (own.includes(digits) ? digits : "0".repeat(48)));
}

async function checkUntouched(names: Names, send: (...request: [string, string, string]) => Promise<Answer>) {
  const { response, running, conversation, added } = names;
  const state = async (id: string) => JSON.parse((await send(authorization, "GET", `/responses/${id}`)).text).status;
  assert.equal(await state(response), "completed");
  assert.match(await state(running), /queued|in_progress/);
  assert.equal((await send(authorization, "GET", `/conversations/${conversation}/items/${added}`)).status, 200);
}
