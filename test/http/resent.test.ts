/** Bodies that repeat earlier ones and go on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Item } from "../../src/core/item.ts";
import { type Beginnings, createBeginnings } from "../../src/http/beginnings.ts";
import { readResent, readWhole } from "../../src/http/resent.ts";
import { collectGarbage } from "../garbage.ts";
import { authorization, createBox, say } from "../scripted.ts";

const limits = { maxJsonDepth: 8 };
const ann = { owner: "ann", listName: "messages" };

/** Reads a body as a request does, and remembers that each element became an item of its own. */
function read(beginnings: Beginnings, body: string | Buffer, sender = ann) {
  const { keep, ...found } = readResent(Buffer.from(body), sender, limits, beginnings);
  const { messages } = found.value as { readonly messages: unknown };
  if (!Array.isArray(messages)) return found;
  const { length = 0, items = [] } = found.earlier ?? {};
  assert.deepEqual(items, messages.slice(0, length).map(toItem));
  keep?.(items.concat(messages.slice(length).map(toItem)));
  return found;
}

const toItem = (element: unknown): Item => ({ type: "message", role: "user", content: JSON.stringify(element) });

const say64 = (index: number) => ({ role: index % 2 === 0 ? "user" : "assistant", content: `${index} `.repeat(64) });
const talk = (length: number) => Array.from({ length }, (_, index) => say64(index));

test("a body is read as if it stood alone, whatever was sent before", () => {
  const strings = fc.string({
    unit: fc.constantFrom("a", '"', "\\", "]", "[", "{", ",", "é", "👋", "\n", "m"),
    maxLength: 9,
  });
  const element = fc.record({ role: strings, content: fc.oneof(strings, fc.array(strings, { maxLength: 2 })) });
  const request = fc.record({
    /** How much of what was sent before is sent again. */
    again: fc.oneof(fc.constant(99), fc.nat(8)),
    added: fc.array(element, { maxLength: 3 }),
    behind: fc.dictionary(strings, fc.array(strings, { maxLength: 2 }), { maxKeys: 2 }),
    odd: fc.constantFrom("", "", "", ',"messages":[1]', ',"mess\\u0061ges":[{}]', ',"messages":0', ",", '"'),
  });
  // Nothing is known before the third.
  const requests = fc.array(request, { minLength: 3, maxLength: 6 });
  let reused = 0;
  fc.assert(
    fc.property(requests, fc.dictionary(strings, strings), fc.boolean(), (list, front, isSpaced) => {
      const beginnings = createBeginnings(() => 1e6, 0);
      let sent: unknown[] = [];
      for (const { again, added, behind, odd } of list) {
        sent = [...sent.slice(0, again), ...added];
        const text = JSON.stringify({ ...front, messages: sent, ...behind }, null, isSpaced ? 1 : 0);
        const body = Buffer.from(text.replace(/\}$/, `${odd}}`));
        const alone = outcome(() => readWhole(body, limits).value);
        const found = outcome(() => {
          const { value, earlier } = read(beginnings, body);
          reused += earlier?.length ?? 0;
          return value;
        });
        assert.deepEqual(found, alone);
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(reused > 50, `only ${reused} elements were known`);
});

test("a list whose name only ends like the resent one's is another list", () => {
  const beginnings = createBeginnings(() => 1e6, 0);
  for (const body of [
    '{"messages":[1,2]}',
    '{"messages":[1,2,3],"\\"messages":[7,8]}',
    '{"messages":[1,2,3],"\\"messages":[7,8,9]}',
  ]) {
    assert.deepEqual(read(beginnings, body).value, JSON.parse(body));
  }
});

/** What a function returns, or the error that it throws. */
function outcome(work: () => unknown): string {
  try {
    return JSON.stringify(work());
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.message;
    throw thrown;
  }
}

test("each of many conversations that begin alike finds its own beginning again", () => {
  const beginnings = createBeginnings(() => 1e9);
  const instructions = { role: "system", content: "Be brief. ".repeat(2_000) };
  const body = (person: number, length: number) => {
    const said = talk(length).map(({ role, content }) => ({
      role,
      content: content.replaceAll(" ", ` by ${person} `),
    }));
    return JSON.stringify({ model: "m", messages: [instructions, ...said], user: "u" });
  };
  for (let length = 1; length < 60; length += 2) {
    for (let person = 0; person < 20; person += 1) {
      const { earlier } = read(beginnings, body(person, length));
      // Before they have said enough to be told apart, only one of them is remembered.
      if (length > 40) assert.equal(earlier?.length, length - 1, `${person} after ${length}`);
    }
  }
});

test("a beginning belongs to its owner and to its list, and a changed one is read anew", () => {
  const body = (length: number, key = "messages") => JSON.stringify({ model: "m", [key]: talk(length) });
  const lengthKnown = (text: string, sender = ann, first = body(200)) => {
    const beginnings = createBeginnings(() => 1e9);
    read(beginnings, first);
    assert.equal(read(beginnings, first).earlier, undefined);
    return readResent(Buffer.from(text), sender, limits, beginnings).earlier?.length;
  };
  assert.equal(lengthKnown(body(204)), 200);
  assert.equal(lengthKnown(body(200)), 200);
  assert.equal(lengthKnown(body(199)), undefined);
  const marked = (length: number) => `\uFEFF${body(length)}`;
  assert.equal(lengthKnown(marked(204), ann, marked(200)), undefined);
  const spaced = (length: number) => JSON.stringify({ messages: talk(length), tools: [{ messages: [] }] }, null, 2);
  assert.equal(lengthKnown(spaced(204), ann, spaced(200)), 200);
  assert.equal(lengthKnown(body(204), { ...ann, owner: "bob" }), undefined);
  assert.equal(lengthKnown(body(204), { ...ann, listName: "input" }), undefined);
  assert.equal(lengthKnown(body(204).replace("7 7 7", "7 8 7")), undefined);
  assert.equal(lengthKnown(body(204).replace('"m"', '"n"')), undefined);
});

test("a body resent with more counts as much as it would alone", () => {
  const beginnings = createBeginnings(() => 1e9);
  const body = (messages: readonly unknown[]) =>
    JSON.stringify({ instructions: "x".repeat(5_000), messages, tools: [{ type: "function" }] });
  for (const length of [200, 300, 400]) {
    const text = body(talk(length));
    const { heldBytes } = readWhole(Buffer.from(text), limits);
    const counted = read(beginnings, text).heldBytes;
    assert.ok(Math.abs(counted - heldBytes) < 500, `${counted} instead of ${heldBytes}`);
  }
  const deep = (levels: number) =>
    body([...talk(400), "[".repeat(levels)]).replace(/"(\[+)"/, (_, open: string) => open + "]".repeat(levels));
  assert.throws(() => read(beginnings, deep(7)), { code: "json_too_deep" });
  assert.equal(read(beginnings, deep(6)).earlier?.length, 400);
});

test("what follows the list counts too, since its bytes are kept", () => {
  const beginnings = createBeginnings(() => 1e6);
  const bodies = Array.from({ length: 40 }, (_, index) => {
    const messages = [{ role: "user", content: `${index} `.repeat(3_000) }];
    return Buffer.from(JSON.stringify({ messages, tools: "x".repeat(100_000) }));
  });
  for (const body of [...bodies, ...bodies]) read(beginnings, body);
  const known = bodies.filter((body) => beginnings.find(ann, body)?.beginning !== undefined);
  assert.ok(known.length > 0 && known.length < 10, `${known.length} bodies are kept`);
});

test("the text of a body is not kept", () => {
  const beginnings = createBeginnings(() => 1e9);
  const before = collectGarbage().heapUsed;
  for (let index = 0; index < 40; index += 1) {
    const messages = [{ role: "user", content: `${index % 20} `.repeat(3_000) }];
    read(beginnings, JSON.stringify({ model: "a model", messages, tools: "x".repeat(500_000) }));
  }
  const kept = collectGarbage().heapUsed - before;
  assert.ok(kept < 3e6, `${kept} bytes`);
  assert.equal(beginnings.find(ann, Buffer.alloc(20_000)), undefined);
});

test("the model sees a long conversation as its client resends it, and as the client has changed it", async (context) => {
  const { adapter, listen } = createBox(context, [say("Yes.")]);
  const address = await listen();
  const post = async (path: string, body: object) => {
    const headers = { authorization, "content-type": "application/json" };
    const response = await fetch(address + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(response.status, 200, await response.text());
    return [
      response.headers.get("x-portico-history"),
      adapter.turns.at(-1)?.items.map((item) => item.type === "message" && item.content),
    ];
  };
  const said = talk(121);
  const contents = (list: readonly { readonly content: string }[]) => list.map(({ content }) => content);
  for (const [path, key] of [
    ["/v1/chat/completions", "messages"],
    ["/v1/responses", "input"],
  ] as const) {
    const ask = (user: string, list: readonly object[]) => post(path, { model: "m", user, [key]: list });
    const next = [
      { role: "assistant", content: "Yes." },
      { role: "user", content: "Really?" },
    ];
    assert.deepEqual(await ask(key, said), ["new", contents(said)]);
    assert.deepEqual(await ask(key, [...said, ...next]), ["matched", contents([...said, ...next])]);
    assert.deepEqual(await ask(key, [...said, ...next, ...next]), ["matched", contents([...said, ...next, ...next])]);
    assert.deepEqual(await ask(key, [...said, ...next]), ["forked", contents([...said, ...next])]);
    const changed = said.with(4, { role: "user", content: "Something else." });
    assert.deepEqual(await ask(key, [...changed, ...next]), ["foreign", contents([...changed, ...next])]);
    // Nobody can read in one conversation what was said in another.
    assert.deepEqual(await ask(`other ${key}`, [...said, ...next]), ["new", contents([...said, ...next])]);
  }
});

test("calls that only a later answer makes count are read anew", async (context) => {
  const { adapter, listen } = createBox(context, [say("Yes.")]);
  const address = await listen();
  const call = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });
  const answer = (id: string) => ({ role: "tool", tool_call_id: id, content: id });
  const messages = [
    { role: "user", content: "Long. ".repeat(4_000) },
    { role: "assistant", function_call: call("a").function, tool_calls: [call("a"), call("b")] },
    answer("a"),
  ];
  for (const [list, count] of [
    [messages, 3],
    [[...messages, answer("b")], 5],
  ] as const) {
    const headers = { authorization, "content-type": "application/json" };
    const body = JSON.stringify({ model: "m", messages: list });
    await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body });
    assert.equal(adapter.turns.at(-1)?.items.length, count);
  }
});

test("what a caller repeats beside what is new is told from what is remembered", async (context) => {
  const calling: Delta[] = [{ type: "tool-call", index: 0, callId: "c", name: "f" }];
  const { adapter, listen } = createBox(context, async function* ({ items }) {
    yield items.some(({ type }) => type === "tool-call") ? say("Yes.") : calling;
  });
  const address = await listen();
  const see = async (user: string, messages: readonly object[]) => {
    const headers = { authorization, "content-type": "application/json" };
    const body = JSON.stringify({ model: "m", messages, user });
    const response = await fetch(`${address}/v1/chat/completions`, { method: "POST", headers, body });
    assert.equal(response.status, 200, await response.text());
    return adapter.turns.at(-1)?.items.map((item) => (item.type === "message" ? item.role : item.type));
  };
  const ask = { role: "user", content: "Long. ".repeat(4_000) };
  const output = { role: "tool", tool_call_id: "c", content: "Found." };
  const answered = ["user", "tool-call", "tool-output"];
  // So that it is known as a conversation that is resent.
  for (const user of ["zoe", "zoe"]) await see(user, [ask]);
  assert.deepEqual(await see("ann", [ask]), ["user"]);
  assert.deepEqual(await see("ann", [ask, output]), answered);
  // The output is repeated, but not the call that it answers.
  assert.deepEqual(await see("ann", [ask, output, ask]), [...answered, "assistant", "user", "user"]);
  // The instructions are repeated with the question, as what is already known.
  const instructed = [ask, { role: "system", content: "Be brief." }];
  assert.deepEqual(await see("bob", instructed), ["user", "system"]);
  assert.deepEqual(await see("bob", [...instructed, output]), ["system", ...answered]);
});
