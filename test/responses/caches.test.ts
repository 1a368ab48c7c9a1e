/** Prompt caches stay whole: what goes upstream for a turn begins, element by element in the same bytes, with what went for the one before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Endpoint, type Heard, replyWith, tellWell } from "../harness/client.ts";
import { checkStream } from "../harness/grammar.ts";
import { fetchBody, shareServed } from "./aids.ts";

type Fields = Readonly<Record<string, unknown>>;

const open = shareServed();

/** How a client goes on: what it names or sends beside its words, and whether these are all words so far or the new ones. */
const clients = {
  "a chain": { on: "responses", shows: false },
  "a conversation": { on: "responses", shows: false },
  "a session of responses": { on: "responses", shows: false },
  "a session of chats": { on: "chat", shows: false },
  "a shown history of responses": { on: "responses", shows: true },
  "a shown history of chats": { on: "chat", shows: true },
  "a history of responses that is shown in a session": { on: "responses", shows: true },
  "a history of chats that is shown in a session": { on: "chat", shows: true },
} as const satisfies Readonly<Record<string, { on: Endpoint; shows: boolean }>>;
type Client = keyof typeof clients;

const word = fc.constantFrom("hi", "  blanks ", "two\n\nparts\n", "line\r\nends", "日本 \u{1f600} é", '{"a": 1}');
const written = fc.constantFrom("{}", "", '{"a": 1,  "b":[ ]}', '{"b":"\\u00e9\\/","a":1e2}');
const called = fc.record({ name: fc.constantFrom("look", "run"), written });
const reply = fc.record({
  text: fc.option(word, { nil: undefined }),
  calls: fc.array(called, { maxLength: 2 }),
});
const talk = fc.record({
  stream: fc.boolean(),
  instructions: fc.boolean(),
  tools: fc.boolean(),
  words: fc.array(word, { minLength: 5, maxLength: 5 }),
  inParts: fc.boolean(),
  withImage: fc.boolean(),
  replies: fc.array(reply, { minLength: 2, maxLength: 5 }),
});
type Talk = typeof talk extends fc.Arbitrary<infer T> ? T : never;

const parameters = { type: "object", properties: { b: {}, a: { type: "string" } } };
const functions = ["run", "look"].map((name) => ({ name, description: name, parameters, strict: false }));
const image = "data:image/png;base64,iVBORw0KGgo=";

/** The forms that one endpoint has for what is said. */
const forms = {
  chat: {
    user: (text: string, { inParts, withImage }: Talk) => {
      const parts = [{ type: "text", text }, ...(withImage ? [{ type: "image_url", image_url: { url: image } }] : [])];
      return { role: "user", content: inParts ? parts : text };
    },
    output: (tool_call_id: string, content: string) => ({ role: "tool", tool_call_id, content }),
    tools: functions.map((each) => ({ type: "function", function: each })),
  },
  responses: {
    user: (text: string, { inParts, withImage }: Talk) => {
      const pictures = withImage ? [{ type: "input_image", image_url: image }] : [];
      return { role: "user", content: inParts ? [{ type: "input_text", text }, ...pictures] : text };
    },
    output: (call_id: string, output: string) => ({ type: "function_call_output", call_id, output }),
    tools: functions.map((each) => ({ type: "function", ...each })),
  },
} as const;

/** What a client keeps of an answer. */
function keep(on: Endpoint, stream: boolean, { raw, text, calls }: Heard): readonly object[] {
  if (on === "responses") return (stream ? checkStream(raw).response : JSON.parse(raw)).output;
  const tool_calls = calls.map(({ id, name, arguments: written }) => {
    return { id, type: "function", function: { name, arguments: written } };
  });
  return [{ role: "assistant", content: text || null, ...(calls.length > 0 && { tool_calls }) }];
}

let sessions = 0;

async function play(client: Client, told: Talk): Promise<void> {
  const { address, server } = await open();
  const { on, shows } = clients[client];
  const { user, output, tools } = forms[on];
  const session = `session ${(sessions += 1)}`;
  const headers: Readonly<Record<string, string>> = client.includes("session") ? { "x-session-id": session } : {};
  const conversation = (await fetchBody(address, "POST", "/v1/conversations")).id;
  const rules = told.instructions && on === "chat" ? [{ role: "system", content: "Be  brief.\n" }] : [];
  const from = server.received.length;
  const shown: object[] = [];
  let news: readonly object[] = [user(told.words[0]!, told)];
  let previous: string | undefined;

  for (const [at, { text, calls }] of told.replies.entries()) {
    const made = calls.map(({ name, written }, index) => {
      return { index, id: `call_${at}_${index}`, type: "function", function: { name, arguments: written } };
    });
    const content = text ?? (calls.length === 0 ? "well" : undefined);
    server.script = replyWith(() => ({
      ...(content !== undefined && { content }),
      ...(made.length > 0 && { tool_calls: made }),
    }));
    shown.push(...news);
    const heard = await tellWell(address, {
      on,
      say: [...rules, ...(shows ? shown : news)],
      stream: told.stream,
      headers,
      more: {
        ...(told.tools && { tools }),
        ...(told.instructions && on === "responses" && { instructions: "Be  brief.\n" }),
        ...(client === "a chain" && { previous_response_id: previous }),
        ...(client === "a conversation" && { conversation }),
        ...(client === "a shown history of responses" && { store: false }),
      },
    });
    previous = heard.id;
    shown.push(...keep(on, told.stream, heard));
    const outputs = heard.calls.map(({ id }) => output(String(id), `of ${id}`));
    news = outputs.length > 0 ? outputs : [user(told.words[at % 5]!, told)];
  }

  const bodies = server.received.slice(from).map(({ json }) => json as Fields);
  assert.equal(bodies.length, told.replies.length);
  for (const [at, body] of bodies.entries()) {
    const before = bodies[at - 1];
    if (before === undefined) continue;
    const [earlier, later] = [before, body].map(({ messages }) =>
      (messages as object[]).map((each) => JSON.stringify(each)),
    );
    assert.deepEqual(later?.slice(0, earlier?.length), earlier);
    assert.ok(later!.length > earlier!.length);
    assert.equal(JSON.stringify(body["tools"]), JSON.stringify(before["tools"]));
  }
}

for (const client of Object.keys(clients) as Client[]) {
  test(`in ${client} each prompt begins with the one before, in the same bytes`, async () => {
    await fc.assert(
      fc.asyncProperty(talk, (told) => play(client, told)),
      { numRuns: 8, seed: 38 },
    );
  });
}
