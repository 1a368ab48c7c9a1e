/** What belongs to one owner does not exist for another: every request for it is answered as if it had never existed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../harness/client.ts";
import { gate, repeatLast, type Script, say, seenBy, shareGateway } from "../harness/house.ts";
import { ask, fetchBody, stranger, strangersToken } from "./aids.ts";

const open = shareGateway({ http: stranger });
const caller = { token: strangersToken };

function refer(id: string): readonly object[] {
  return [{ type: "item_reference", id }];
}

/** Everything of the first owner that has an id; `own` is a conversation of the stranger. */
interface Names {
  readonly response: string;
  readonly running: string;
  readonly item: string;
  readonly asked: string;
  readonly conversation: string;
  readonly added: string;
  readonly own: string;
}

/** Requests with the names of what they mean in braces. */
const rows: readonly (readonly [what: string, request: string, body?: object])[] = [
  ["a response is retrieved", "GET /responses/{response}"],
  ["a response that runs is retrieved", "GET /responses/{running}"],
  ["a response is told again", "GET /responses/{response}?stream=true"],
  ["a response that runs is followed", "GET /responses/{running}?stream=true&starting_after=0"],
  ["a response is deleted", "DELETE /responses/{response}"],
  ["a response that runs is deleted", "DELETE /responses/{running}"],
  ["a response that runs is cancelled", "POST /responses/{running}/cancel", {}],
  ["the input of a response is listed", "GET /responses/{response}/input_items"],
  ["a response is continued", "POST /responses", { input: "hi", previous_response_id: "{response}" }],
  ["a running one is continued", "POST /responses", { input: "hi", previous_response_id: "{running}", stream: true }],
  ["a response is compacted", "POST /responses/compact", { previous_response_id: "{response}" }],
  ["a response is counted", "POST /responses/input_tokens", { input: "hi", previous_response_id: "{response}" }],
  ["an item of an answer is meant", "POST /responses", { input: refer("{item}") }],
  ["an item of a question is meant", "POST /responses", { input: refer("{asked}") }],
  ["an added item is meant", "POST /responses", { input: refer("{added}") }],
  ["an item is meant in what is compacted", "POST /responses/compact", { input: refer("{item}") }],
  ["an item is meant in what is counted", "POST /responses/input_tokens", { input: refer("{item}") }],
  ["an item is meant in a new conversation", "POST /conversations", { items: refer("{item}") }],
  ["an item is meant in the caller's own one", "POST /conversations/{own}/items", { items: refer("{item}") }],
  ["an item is read in the caller's own one", "GET /conversations/{own}/items/{added}"],
  ["an item is deleted in the caller's own one", "DELETE /conversations/{own}/items/{added}"],
  ["a page begins behind an item", "GET /conversations/{own}/items?after={added}"],
  ["a conversation is read", "GET /conversations/{conversation}"],
  ["a conversation is changed", "POST /conversations/{conversation}", { metadata: {} }],
  ["a conversation is deleted", "DELETE /conversations/{conversation}"],
  ["a conversation is listed", "GET /conversations/{conversation}/items"],
  ["items are added", "POST /conversations/{conversation}/items", { items: [{ role: "user", content: "x" }] }],
  ["an item of a conversation is read", "GET /conversations/{conversation}/items/{added}"],
  ["an item of a conversation is deleted", "DELETE /conversations/{conversation}/items/{added}"],
  ["a conversation is continued", "POST /responses", { input: "hi", conversation: "{conversation}" }],
  ["a conversation is counted", "POST /responses/input_tokens", { input: "hi", conversation: "{conversation}" }],
];

for (const [what, request, fields] of rows) {
  test(`another owner's id is answered like an unknown one when ${what}`, async () => {
    const { address, model } = await open();
    const names = await lay();
    const asked = model.turns.length;
    const answers = [];
    for (const given of [names, toUnknown(names)]) {
      const put = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_, name: keyof Names) => given[name]);
      const [method = "", path = ""] = put(request).split(" ");
      const body = fields && put(JSON.stringify({ model: "m", ...fields }));
      const answered = await call(address, method, `/v1${path}`, body, caller);
      const code = answered.body?.error.code;
      assert.equal(answered.status, code === "previous_response_not_found" ? 400 : 404, answered.raw);
      assert.match(code, /^(previous_response_)?not_found$/);
      let { raw } = answered;
      for (const [key, id] of Object.entries(given)) if (key !== "own") raw = raw.replaceAll(id, "ID");
      answers.push({ status: answered.status, headers: [...answered.headers.keys()], raw });
    }
    assert.deepEqual(answers[0], answers[1]);
    assert.equal(model.turns.length, asked);
    await checkUntouched(address, names);
  });
}

test("two owners who send the same hint never meet", async () => {
  const { address, model } = await open();
  await lay();
  const headers = { "x-session-id": "1" };
  await ask(address, "mine", {}, { headers });
  await ask(address, "theirs", {}, { ...caller, headers });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: theirs"]);
  await ask(address, "mine again", {}, { headers });
  assert.deepEqual(seenBy(model.turns.at(-1)), ["user: mine", "assistant: re: mine", "user: mine again"]);
});

test("to its owner all of it is still there", async () => {
  const { address } = await open();
  const { response, running, item, conversation } = await lay();
  assert.equal((await fetchBody(address, "GET", `/v1/responses/${response}`)).output[0].id, item);
  assert.equal((await fetchBody(address, "POST", `/v1/responses/${running}/cancel`)).status, "cancelled");
  assert.equal((await fetchBody(address, "DELETE", `/v1/conversations/${conversation}`)).deleted, true);
});

let laid: Promise<Names> | undefined;

/** One owner with a response, a running response, and a conversation; the stranger with one, too. */
function lay(): Promise<Names> {
  return (laid ??= (async () => {
    const { address, model } = await open();
    const begun = gate();
    const waiting: Script = async function* (turn, signal) {
      if (seenBy(turn).at(-1) !== "user: wait") return yield* (repeatLast as Extract<Script, Function>)(turn, signal);
      begun.open();
      yield say("secret");
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    };
    model.script = waiting;
    const response = await ask(address, "secret");
    const running = await ask(address, "wait", { background: true });
    await begun.opened;
    const items = (content: string) => ({ items: [{ role: "user", content }] });
    const conversation = (await fetchBody(address, "POST", "/v1/conversations", items("secret"))).id;
    const own = (await fetchBody(address, "POST", "/v1/conversations", items("mine"), caller)).id;
    const first = async (path: string) => (await fetchBody(address, "GET", path)).first_id;
    return {
      response: response.id,
      running: running.id,
      item: response.output[0].id,
      asked: await first(`/v1/responses/${response.id}/input_items`),
      conversation,
      added: await first(`/v1/conversations/${conversation}/items`),
      own,
    };
  })());
}

/** Ids of the same form that name nothing. */
function toUnknown(names: Names): Names {
  const unknown = (id: string) =>
    id.replace(/(?<=_).*/, (key) => key.replaceAll(/[1-9]/g, "0").replaceAll(/[a-z]/g, "a"));
  return Object.fromEntries(
    Object.entries(names).map(([key, id]) => [key, key === "own" ? id : unknown(id)]),
  ) as unknown as Names;
}

async function checkUntouched(address: string, { response, running, conversation, added }: Names): Promise<void> {
  assert.equal((await fetchBody(address, "GET", `/v1/responses/${response}`)).status, "completed");
  assert.equal((await fetchBody(address, "GET", `/v1/responses/${running}`)).status, "in_progress");
  const { data } = await fetchBody(address, "GET", `/v1/conversations/${conversation}/items`);
  assert.deepEqual([data.length, data[0].id], [1, added]);
}
