/** The echo adapter as docs/echo.md describes it, each example of the page included, and the JSON that it makes up. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Check } from "typebox/schema";
import { begin, endpoints, hear, tell, tellWell, withoutComments } from "../harness/client.ts";
import { gatherChunks } from "../harness/chunks.ts";
import { openGateway, shareGateway } from "../harness/house.ts";
import { byName, listModels, user } from "./scene.ts";

const echo = { type: "echo", retries: 0 };
const open = shareGateway({
  http: { expose_reasoning: true },
  gateway: { adapters: { echo, slow: { ...echo, delay_ms: 1 } }, ...byName(["echo", "slow"]) },
});

const page = readFileSync(new URL("../../docs/echo.md", import.meta.url), "utf8");
const tools: unknown = JSON.parse(/two tools:\n\n```json\n([^`]*)```/.exec(page)?.[1] ?? "");

/** The answer in the notation of the page. */
async function say(text: string, fields: Fields): Promise<string> {
  const { address } = await open();
  const heard = await tell(address, { on: "chat", say: text, stream: true, more: fields });
  if (heard.status !== 200) return `! ${heard.status} ${heard.error?.["code"]}`;
  const { message, finishReason, error } = gatherChunks(withoutComments(heard.raw));
  const { content, reasoning, refusal } = message;
  const thought = reasoning === "" ? "" : `(${reasoning}) `;
  const refused = refusal === "" ? "" : `(refusal: ${refusal})`;
  const called = message.calls.map((one) => `→ ${one.name} ${one.arguments}`).join("\n");
  const end = error === undefined ? "" : `! 502 ${error["code"]}`;
  return `${thought}${content}${refused}${called}${finishReason === "length" ? "…" : ""}${end}`;
}

type Fields = Readonly<Record<string, unknown>>;
/** A JSON Schema, or a part of one. */
type Schema = Fields;

const rows = page.split(/^## /m).flatMap((part) => {
  const section = part.slice(0, part.indexOf("\n"));
  const found = part.matchAll(/^\| ([^|`]+?) +\| `([^|]*)` +\| `(\{[^|]*\})` +\| `([^|]*)` +\|$/gm);
  return [...found].map(([, what, ...rest]) => {
    const [text = "", fields = "", answer = ""] = rest.map((cell) => cell.replaceAll("⏎", "\n"));
    return { section, what, text, fields: JSON.parse(fields) as Fields, answer };
  });
});

for (const { section, what, text, fields, answer } of rows) {
  test(`${section}: ${what}`, async () => {
    assert.equal(await say(text, { ...(section === "Tools" && { tools }), ...fields }), answer);
    // A circuit breaker counts failures in a row.
    await say("well", {});
  });
}

assert.ok(rows.length >= 18, `${rows.length} rows`);

test("ERROR fails with each code that the page lists, and with its status", async () => {
  const [, list = ""] = /^`ERROR` knows ([^;]+);/m.exec(page) ?? [];
  const codes = [...list.matchAll(/`(\w+)`/g)].map(([, code]) => code);
  assert.ok(codes.length >= 8, list);
  const statuses = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  for (const code of codes) {
    const [, status] = new RegExp(`^\\| \`${code}\` +\\| (\\d+)`, "m").exec(statuses) ?? [];
    assert.equal(await say(`ERROR ${code}`, {}), `! ${status} ${code}`);
    await say("well", {});
  }
  assert.equal(await say("ERROR internal_error", {}), "ERROR internal_error");
});

for (const on of endpoints) {
  test(`${on}: the text comes back exactly, also word by word with a delay`, async () => {
    const { address } = await open();
    for (const text of ["  two  blanks\n\tand lines\n", "one", "naïve 😀 — text"]) {
      for (const model of ["echo", "slow"]) {
        assert.equal((await tellWell(address, { on, say: text, stream: true, more: { model } })).text, text);
      }
    }
  });
}

test("without a user's text there is nothing to say, and content that is no text is named in brackets", async () => {
  const { address } = await open();
  const answer = async (...messages: object[]) => (await tellWell(address, { on: "chat", say: messages })).text;
  assert.equal(await answer({ role: "system", content: "Be brief." }), "");
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
  const file = { type: "file", file: { filename: "report.pdf", file_data: "data:application/pdf;base64,AA==" } };
  assert.equal(await answer(user([image, file])), "[image] [file]");
  assert.equal(await answer(user([image, { type: "text", text: "look" }])), "look");
});

test("outputs of tools are repeated, a line each, and the user's directives no longer followed", async () => {
  const { address } = await open();
  const called = ["a", "b"].map((id) => ({ id, type: "function", function: { name: "get_weather", arguments: "{}" } }));
  const messages = [
    user("FAIL before get_weather"),
    { role: "assistant", content: null, tool_calls: called },
    { role: "tool", tool_call_id: "a", content: "sunny" },
    { role: "tool", tool_call_id: "b", content: "all quiet" },
  ];
  const { text } = await tellWell(address, { on: "chat", say: messages, more: { tools } });
  assert.equal(text, "tool said: sunny\ntool said: all quiet");
});

test("it offers one model, echo", async (context) => {
  const gateway = await openGateway(context, { gateway: { adapters: { house: echo } } });
  assert.deepEqual(await listModels(gateway.address), ["echo"]);
});

test("a caller that leaves while the echo waits frees its place", async (context) => {
  const { address } = await openGateway(context, {
    limits: { max_concurrent_turns: 1, heartbeat_ms: 20 },
    gateway: { adapters: { echo, slow: { ...echo, delay_ms: 60_000 } }, ...byName(["echo", "slow"]) },
  });
  for (const [say, model] of [
    ["one two three", "slow"],
    ["SLEEP 600000 late", "echo"],
  ] as const) {
    const response = await begin(address, { on: "chat", say, stream: true, more: { model } });
    await hear(response, ":");
    response.destroy();
    let next = await tell(address, { on: "chat", say: "next" });
    while (next.status === 503) next = await tell(address, { on: "chat", say: "next" });
    assert.equal(next.text, "next");
  }
});

const text = { type: "string" };
const place = object({ city: text });
const simple = ["string", "number", "integer", "boolean", "null"].map((type) => [type, { type }]);
const node = object({ name: text, children: { type: "array", items: { $ref: "#/$defs/node" } } });
const age = { type: "integer", minimum: 18, maximum: 20 };
const share = { type: "number", maximum: -1.5 };
const samples: readonly (readonly [what: string, schema: Schema])[] = [
  ["an object with every simple type", object(Object.fromEntries(simple))],
  ["an object in an object", object({ place, tags: object({ one: text }) })],
  ["a list that may not be empty", object({ names: { type: "array", items: { type: "string" }, minItems: 2 } })],
  ["a list of objects", object({ places: { type: "array", items: place, minItems: 1, maxItems: 3 } })],
  ["an enum", object({ size: { type: "string", enum: ["small", "large"] }, kind: { const: "shirt" } })],
  ["bounds of numbers", object({ age, share })],
  ["bounds of strings", object({ code: { type: "string", minLength: 8, maxLength: 8 } })],
  ["a nullable property", object({ note: { type: ["string", "null"] }, other: { anyOf: [{ type: "null" }, place] } })],
  ["a reference", { ...object({ from: { $ref: "#/$defs/place" }, to: { $ref: "#/$defs/place" } }), $defs: { place } }],
  ["a tree that refers to itself", { ...object({ root: { $ref: "#/$defs/node" } }), $defs: { node } }],
];

function object(properties: Schema): Schema {
  return { type: "object", properties, required: Object.keys(properties), additionalProperties: false };
}

for (const [what, schema] of samples) {
  test(`structured output satisfies its schema: ${what}`, async () => {
    const { address } = await open();
    const format = { name: "answer", strict: true, schema };
    const chat = { response_format: { type: "json_schema", json_schema: format } };
    const responses = { text: { format: { type: "json_schema", ...format } } };
    for (const on of endpoints) {
      const more = on === "chat" ? chat : responses;
      const { text: written } = await tellWell(address, { on, say: "Whatever fits.", more });
      assert.ok(Check(schema, JSON.parse(written)), written);
    }
    const offered = [{ type: "function", function: { name: "fill", parameters: schema, strict: true } }];
    const { calls } = await tellWell(address, { on: "chat", say: "CALL fill", more: { tools: offered } });
    assert.ok(Check(schema, JSON.parse(calls[0]!.arguments)), calls[0]!.arguments);
  });
}

for (const [what, schema] of [
  ["refers to itself without an end", { $ref: "#/$defs/a", $defs: { a: object({ a: { $ref: "#/$defs/a" } }) } }],
  ["doubles thirty times", { $ref: "#/$defs/d0", $defs: Object.fromEntries(Array.from({ length: 31 }, doubling)) }],
] as const) {
  test(`a schema that ${what} is refused, and others are answered meanwhile`, async () => {
    const { address } = await open();
    const more = { response_format: { type: "json_schema", json_schema: { name: "answer", schema } } };
    const refused = tell(address, { on: "chat", say: "Fill it.", more });
    assert.equal((await fetch(`${address}/healthz`)).status, 200);
    assert.deepEqual([(await refused).status, (await refused).error?.["code"]], [400, "adapter_bad_request"]);
  });
}

function doubling(_: unknown, level: number): [string, Schema] {
  if (level === 30) return ["d30", { type: "string" }];
  const next = { $ref: `#/$defs/d${level + 1}` };
  return [`d${level}`, object({ one: next, other: next })];
}
