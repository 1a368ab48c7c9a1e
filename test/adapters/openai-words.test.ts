/** The field of the token limit and the role of the developer, on servers that support older chat fields only. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenai } from "./made.ts";
import { type ServerOptions, writeRequest } from "../../src/adapters/openai/chat/request.ts";
import type { Settings, Turn } from "../../src/core/turn.ts";
import { answerJson, startUpstream } from "../upstream.ts";

const items = [
  { type: "message", role: "developer", content: "Rules" },
  { type: "message", role: "user", content: "Hello" },
] as const;

function turnOf(settings: Partial<Settings>): Turn {
  return { id: "resp_1", model: "m", items, settings: { tools: [], ...settings }, stream: false };
}

interface Written {
  readonly max_tokens?: number;
  readonly max_completion_tokens?: number;
  readonly messages: readonly { readonly role: string }[];
}

function write(settings: Partial<Settings>, options: ServerOptions = {}): Written {
  return JSON.parse(writeRequest(turnOf(settings), options).toString());
}

function limitsOf({ max_tokens, max_completion_tokens }: Written): object {
  return { ...(max_tokens && { max_tokens }), ...(max_completion_tokens && { max_completion_tokens }) };
}

/** The settings of a chat caller, as its protocol reads them. */
function fromChat(fields: Readonly<Record<string, unknown>>, maxOutputTokens?: number): Partial<Settings> {
  return { maxOutputTokens, native: { dialect: "chat", fields } };
}

const fromResponses: Partial<Settings> = { maxOutputTokens: 16, native: { dialect: "responses", fields: {} } };

for (const maxTokensField of ["max_tokens", "max_completion_tokens"] as const) {
  test(`the token limit is sent as ${maxTokensField} only where that is configured, whatever the caller wrote`, () => {
    const both = { max_tokens: 99, max_completion_tokens: 16 };
    const callers = [
      fromResponses,
      { maxOutputTokens: 16 },
      fromChat({ max_tokens: 16 }, 16),
      fromChat({ max_completion_tokens: 16 }, 16),
      fromChat(both, 16),
    ];
    for (const caller of callers)
      assert.deepEqual(limitsOf(write(caller, { maxTokensField })), { [maxTokensField]: 16 });
    assert.deepEqual(limitsOf(write(fromChat({}), { maxTokensField })), {});
  });
}

test("by default a chat caller's own field is kept, and others get max_completion_tokens", () => {
  assert.deepEqual(limitsOf(write(fromChat({ max_tokens: 16 }, 16))), { max_tokens: 16 });
  assert.deepEqual(limitsOf(write(fromChat({ max_completion_tokens: 16 }, 16))), { max_completion_tokens: 16 });
  assert.deepEqual(limitsOf(write(fromResponses)), { max_completion_tokens: 16 });
});

test("a developer message gets the role system from other dialects, and keeps a chat caller's role", () => {
  const roleOf = (settings: Partial<Settings>, options?: ServerOptions) => write(settings, options).messages[0]?.role;
  assert.equal(roleOf(fromResponses), "system");
  assert.equal(roleOf({}), "system");
  assert.equal(roleOf(fromChat({})), "developer");
  for (const caller of [fromResponses, fromChat({}), {}]) {
    assert.equal(roleOf(caller, { developerRole: "system" }), "system");
    assert.equal(roleOf(caller, { developerRole: "developer" }), "developer");
  }
});

test("max_tokens_field and developer_role are options of the adapter", async () => {
  const message = { role: "assistant", content: "Hi" };
  await using server = await startUpstream(answerJson({ choices: [{ index: 0, message, finish_reason: "stop" }] }));
  const chosen = { base_url: server.url, max_tokens_field: "max_tokens", developer_role: "system" } as const;
  const adapter = createOpenai(chosen, {});
  const turn = turnOf(fromChat({ max_completion_tokens: 16 }, 16));
  for await (const _ of adapter.stream(turn, new AbortController().signal));
  assert.deepEqual(server.received[0]?.json, {
    model: "m",
    max_tokens: 16,
    messages: [
      { role: "system", content: "Rules" },
      { role: "user", content: "Hello" },
    ],
  });
  await adapter.close?.();
});
