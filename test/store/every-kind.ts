/** Says something of every kind that a store can hold, so that an archive of it has every field of every line. */
import assert from "node:assert/strict";
import { call, tell, tellWell } from "../harness/client.ts";
import { call as toCall, type Delta, type Gateway, say, type Script, type Scope, usage } from "../harness/house.ts";
import { dial } from "../harness/websocket.ts";
import { until } from "./aid.ts";

/** Its sessions are of these hints; the rest is in hidden sessions and one conversation. */
export const users = ["ann", "tools", "parts", "loose"] as const;

const png = "data:image/png;base64,iVBORw0KGgo=";
const schema = { type: "object", properties: { at: { type: "string" } } };
const look = { type: "function", name: "look", description: "Looks.", parameters: schema, strict: true };
const patch = { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark", definition: "start: /./" } };
const group = { type: "namespace", name: "garden", description: "Beds.", tools: [look, patch, { type: "web_search" }] };

export async function sayEveryKind(scope: Scope, gateway: Gateway): Promise<void> {
  const ask = (script: Script, input: unknown, more: object = {}) => {
    gateway.model.script = script;
    return tellWell(gateway.address, { on: "responses", say: input as string, more: { ...more } });
  };
  const answer = (...deltas: readonly Delta[]): Script => [deltas];
  await sayTexts(gateway, ask, answer);
  await useTools(gateway, ask, answer);
  await sendParts(gateway, ask);
  await breakOff(scope, gateway, ask);
  await deleteSome(gateway, ask, answer);
}

type Ask = (script: Script, input: unknown, more?: object) => Promise<{ readonly id: string; readonly raw: string }>;
type ToAnswer = (...deltas: readonly Delta[]) => Script;

async function sayTexts(gateway: Gateway, ask: Ask, answer: ToAnswer): Promise<void> {
  const user = users[0];
  const [long, marked] = ["Be brief. ".repeat(300), "\u0001qZkVx8C0t4n0Zz1o7oU3uH3wW-k"];
  await ask(answer(...say("plain")), "one", { user, instructions: long, metadata: { bed: "rose" } });
  const system = { role: "system", content: long };
  await ask(answer(...say("again")), [system, { role: "user", content: marked }], { user });
  const logprobs = [{ token: "a", logprob: -0.5, bytes: [97], top_logprobs: [] }];
  const annotation = { type: "url_citation", fields: { url: "https://a.example", start_index: 0, end_index: 1 } };
  const extra = { dialect: "responses", fields: { phase: "final" } } as const;
  await ask(
    answer(
      { type: "reasoning", text: "Because.", summary: 0 },
      { type: "reasoning", text: "Raw." },
      { type: "reasoning-extra", extra: { dialect: "chat", fields: { reasoning_details: [{ index: 0 }] } } },
      { type: "reasoning-seal", encrypted: "opaque" },
      { type: "text", text: "a", logprobs, extra },
      { type: "annotation", annotation },
      { type: "message-end", extra },
      { type: "refusal", text: "No." },
      { type: "message-extra", extra: { dialect: "chat", fields: { audio: { id: "a" } } } },
      { type: "usage", usage: { ...usage, cacheWriteTokens: 1 } },
      { type: "notes", notes: { fingerprint: "fp", serviceTier: "flex", extra: { dialect: "responses", fields: {} } } },
    ),
    "two \ud800 \u0000 \u2028",
    { user, tools: [{ type: "web_search" }] },
  );
  await ask(answer(...say("half"), { type: "finish", reason: "length" }), "long", { user, max_output_tokens: 16 });
  await ask(answer(...say("un"), { type: "finish", reason: "content-filter" }), "filtered");
  await ask(answer(...say("short")), [{ role: "user", content: "sum" }, { type: "compaction_trigger" }], { user });
  gateway.model.script = answer(...say("completed"));
  const messages = [
    { role: "developer", content: "Kindly.", name: "boss", custom: 1 },
    { role: "user", content: [{ type: "text", text: "hi", cache_control: { type: "ephemeral" } }] },
  ];
  await tellWell(gateway.address, { on: "chat", say: messages, more: { user } });
}

async function useTools(gateway: Gateway, ask: Ask, answer: ToAnswer): Promise<void> {
  const user = users[1];
  const search = { type: "tool_search", execution: "client", description: "Finds tools.", parameters: schema };
  const tools = [look, patch, group, search];
  const calls: readonly Delta[] = [
    ...toCall("call_1", "look", '{"at":"bed"}'),
    { type: "tool-call", index: 1, callId: "call_2", name: "patch", kind: "custom" },
    { type: "tool-arguments", index: 1, text: "free" },
    { type: "tool-call", index: 2, callId: "call_3", name: "garden__look", extra: { dialect: "chat", fields: {} } },
    { type: "tool-call", index: 3, callId: "call_4", name: "tool_search" },
  ];
  await ask(answer(...calls), "use them", { user, tools });
  const found = [look, { ...patch, defer_loading: true }, group, search, { type: "mcp", server_label: "m" }];
  const outputs = [
    { type: "function_call_output", call_id: "call_1", output: [{ type: "input_image", image_url: png }] },
    { type: "custom_tool_call_output", call_id: "call_2", output: "done" },
    { type: "function_call_output", call_id: "call_3", output: "ok", status: "completed", added: { by: "caller" } },
    { type: "tool_search_output", call_id: "call_4", tools: found },
    { type: "additional_tools", role: "developer", tools: found },
    { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true },
    { type: "web_search_call", id: "ws_0", status: "completed", action: { type: "search", query: "moss" } },
  ];
  const fields = {
    type: "web_search_call",
    id: "ws_1",
    status: "completed",
    action: { type: "search", query: "fern" },
  };
  const request = { type: "mcp_approval_request", id: "mcpr_2", arguments: "{}", name: "n", server_label: "m" };
  await ask(
    answer(
      { type: "other", extra: { dialect: "responses", fields } },
      { type: "other", extra: { dialect: "responses", fields: request }, exchange: { side: "model", id: "mcpr_2" } },
      ...say("searched"),
    ),
    [{ type: "mcp_approval_request", id: "mcpr_1", arguments: "{}", name: "n", server_label: "m" }, ...outputs],
    { user, tools },
  );
}

async function sendParts(gateway: Gateway, ask: Ask): Promise<void> {
  const content = [
    { type: "input_text", text: "see", note: { by: "caller" } },
    { type: "input_image", image_url: png, detail: "low" },
    { type: "input_image", file_id: "file_1" },
    { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } },
    { type: "input_file", file_data: "data:text/plain;base64,aGk=", filename: "hi.txt" },
    { type: "input_file", file_url: "https://a.example/b.pdf" },
    { type: "input_file", file_id: "file_2" },
    { type: "input_hologram", depth: 3 },
  ];
  const said = [
    { type: "output_text", text: "x", annotations: [{ type: "file_path", file_id: "f" }], logprobs: [{ token: "x" }] },
    { type: "refusal", refusal: "no" },
  ];
  const items = [
    { role: "user", content },
    { role: "assistant", content: said },
    { type: "reasoning", summary: [{ type: "summary_text", text: "s" }], encrypted_content: "theirs" },
    { role: "user", content: [] },
    { role: "user", content: "well?" },
  ];
  await ask([say("seen")], items, { user: users[2] });
  const unasked = [...items, { type: "compaction", encrypted_content: "theirs" }];
  const body = { metadata: { a: "b" }, items: unasked };
  const { status, raw } = await call(gateway.address, "POST", "/v1/conversations", body);
  assert.equal(status, 200, raw);
}

async function breakOff(scope: Scope, gateway: Gateway, ask: Ask): Promise<void> {
  const user = users[3];
  const breaking: Script = async function* () {
    yield say("half a word");
    throw Object.assign(new Error("It is full."), { code: "overloaded" });
  };
  gateway.model.script = breaking;
  await tell(gateway.address, { on: "responses", say: "fail", stream: true, more: { user } });
  const { id: failed } = await ask(breaking, "fail unseen", { background: true });
  await until(async () => (await call(gateway.address, "GET", `/v1/responses/${failed}`)).body.status === "failed");
  const { id: done } = await ask([say("done")], "unseen", { background: true, user });
  await until(async () => (await call(gateway.address, "GET", `/v1/responses/${done}`)).body.status === "completed");
  const endless: Script = async function* (_turn, signal) {
    yield say("half");
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    signal.throwIfAborted();
  };
  const { id: stopped } = await ask(endless, "stop", { background: true });
  await call(gateway.address, "POST", `/v1/responses/${stopped}/cancel`);
  const client = await dial(scope, gateway.address);
  client.create({ input: "interrupt me" });
  while ((await client.next()).type !== "response.output_text.delta");
  client.send({ type: "response.interrupt" });
  await client.answer();
}

async function deleteSome(gateway: Gateway, ask: Ask, answer: ToAnswer): Promise<void> {
  const root = await ask(answer(...say("root")), "to be deleted");
  await ask(answer(...say("left")), "left", { previous_response_id: root.id });
  await ask(answer(...say("right")), "right", { previous_response_id: root.id });
  assert.equal((await call(gateway.address, "DELETE", `/v1/responses/${root.id}`)).status, 200);
  const { body } = await call(gateway.address, "POST", "/v1/conversations", {});
  const path = `/v1/conversations/${body.id}/items`;
  await ask(answer(...say("kept")), "in it", { conversation: body.id });
  await call(gateway.address, "POST", path, {
    items: [
      { role: "user", content: "added" },
      { role: "user", content: "gone" },
    ],
  });
  const { body: list } = await call(gateway.address, "GET", path);
  const [gone, , said] = list.data;
  for (const { id } of [gone, said]) assert.equal((await call(gateway.address, "DELETE", `${path}/${id}`)).status, 200);
}
