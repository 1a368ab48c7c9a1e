import assert from "node:assert/strict";
import { test } from "node:test";
import type { Dialect, Item } from "../../src/core/item.ts";
import type { Remark } from "../../src/core/ports.ts";
import { adaptTurn } from "../../src/core/route/adapt.ts";
import type { Settings, Tool, Turn } from "../../src/core/turn.ts";

const weather: Tool = { type: "function", name: "weather" };
const clock: Tool = { type: "function", name: "clock" };
const search: Tool = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } };

function toTurn(settings: Partial<Settings>, items: readonly Item[] = []): Turn {
  return { id: "resp_1", model: "m", items, settings: { tools: [], ...settings }, stream: false };
}

/** The turn as an adapter that supports these dialects receives it, and the remarks for its caller. */
function fit(turn: Turn, ...speaks: Dialect[]) {
  const remarks: Remark[] = [];
  return { turn: adaptTurn(turn, { speaks }, (remark) => remarks.push(remark)).turn, remarks };
}

function allow(type: "auto" | "required", ...names: string[]): Pick<Settings, "toolChoice" | "allowedTools"> {
  return { toolChoice: { type }, allowedTools: names };
}

test("a turn that the adapter supports is passed on unchanged", () => {
  const items: Item[] = [{ type: "message", role: "user", content: "hi" }];
  for (const settings of [{}, { tools: [weather, clock], toolChoice: { type: "tool", name: "clock" } as const }]) {
    const turn = toTurn(settings, items);
    assert.equal(fit(turn).turn, turn);
  }
  const native = { dialect: "responses", fields: { prompt: { id: "p" } } } as const;
  const turn = toTurn({ tools: [search], native }, [{ type: "compaction", summary: "", encrypted: "x" }]);
  assert.equal(fit(turn, "responses").turn, turn);
});

test("an item of another dialect is omitted and reported once per type; one of the adapter's own dialect is not", () => {
  const asked: Item = { type: "message", role: "user", content: "hi" };
  const toOther = (type: string): Item => ({ type: "other", extra: { dialect: "responses", fields: { type } } });
  const searched = toOther("web_search_call");
  const turn = toTurn({}, [asked, searched, toOther("mcp_call"), searched]);
  const remarks = ["item web_search_call", "item mcp_call"].map((what) => ({ type: "left-out", what }));
  assert.deepEqual(fit(turn, "chat"), { turn: { ...turn, items: [asked] }, remarks });
  assert.equal(fit(turn, "responses").turn, turn);
});

test("an item of another dialect is sent as the text that it says, if any", () => {
  const told: Item = {
    type: "other",
    extra: { dialect: "responses", fields: { type: "agent_message" } },
    words: "Go.",
  };
  const turn = toTurn({}, [told]);
  const said: Item = { type: "message", role: "user", content: "Go." };
  assert.deepEqual(fit(turn, "chat"), { turn: { ...turn, items: [said] }, remarks: [] });
  assert.equal(fit(turn, "responses").turn, turn);
});

test("a field of the caller's dialect alone is reported if it is optional, and refused if the answer depends on it", () => {
  const offered = toTurn({ native: { dialect: "chat", fields: { web: {}, draft: 1 }, offers: ["web", "draft"] } });
  const demands = [{ param: "bias", why: "Leave it out." }];
  const demanded = toTurn({ native: { dialect: "chat", fields: { bias: 1 }, demands, offers: ["web"] } });
  for (const speaks of [[], ["responses"]] as const) {
    const remarks = ["web", "draft"].map((what) => ({ type: "left-out", what }));
    assert.deepEqual(fit(offered, ...speaks), { turn: offered, remarks });
    assert.throws(() => fit(demanded, ...speaks), {
      code: "unsupported_parameter",
      param: "bias",
      message: "Unsupported parameter: 'bias'. Leave it out.",
    });
  }
  for (const turn of [offered, demanded]) assert.deepEqual(fit(turn, "chat"), { turn, remarks: [] });
});

test("a request with nothing left for the model is refused, unless it has instructions", () => {
  const listed: Item = { type: "other", extra: { dialect: "responses", fields: { type: "mcp_list_tools" } } };
  assert.throws(() => fit(toTurn({}, [listed]), "chat"), {
    code: "unsupported_parameter",
    param: "input",
    message: /contains no item that the adapter behind this model can read. Add a message.$/,
  });
  assert.deepEqual(fit(toTurn({ instructions: "Greet." }, [listed]), "chat").turn.items, []);
  assert.deepEqual(fit(toTurn({ instructions: "Greet." }, []), "chat").turn.items, []);
});

test("a message with no text, only fields that the adapter cannot read, is omitted", () => {
  const extra = { dialect: "chat", fields: { reasoning_content: "Hm" } } as const;
  const carrier: Item = { type: "message", role: "assistant", content: "", extra };
  const call: Item = { type: "tool-call", kind: "function", callId: "c1", name: "look", arguments: "{}" };
  const said: Item = { type: "message", role: "assistant", content: "So.", extra };
  const blanks: readonly Item[] = [
    { type: "message", role: "assistant", content: "" },
    { type: "message", role: "user", content: "", extra },
  ];
  const turn = toTurn({}, [carrier, call, said, ...blanks]);
  assert.equal(fit(turn, "chat").turn, turn);
  assert.deepEqual(fit(turn, "responses"), { turn: { ...turn, items: [call, said, ...blanks] }, remarks: [] });
});

test("settings that an item updates apply for an adapter that does not know the item, if its caller uses that dialect", () => {
  const fields = { type: "configuration_update" };
  const update: Item = {
    type: "other",
    extra: { dialect: "responses", fields },
    updates: { reasoningEffort: "low" },
  };
  const effortOf = (asked: Dialect | undefined, ...speaks: readonly Dialect[]): string | undefined => {
    const native = asked && { dialect: asked, fields: {} };
    const items: Item[] = [update, { type: "message", role: "user", content: "hi" }];
    const { turn, remarks } = fit(toTurn({ reasoningEffort: "high", temperature: 0, native }, items), ...speaks);
    assert.deepEqual([turn.settings.temperature, remarks], [0, []]);
    return turn.settings.reasoningEffort;
  };
  assert.equal(effortOf("responses", "chat"), "low");
  assert.equal(effortOf(undefined, "chat"), "high");
  assert.equal(effortOf("chat", "chat"), "high");
  assert.equal(effortOf("chat"), "high", "an adapter that speaks no dialect");
  assert.equal(effortOf("responses", "responses"), "high");
});

test("a tool that the adapter does not support is omitted and reported", () => {
  const settings = { toolChoice: { type: "auto" }, temperature: 0, native: undefined } as const;
  const { turn, remarks } = fit(toTurn({ tools: [search, weather], ...settings }), "chat");
  assert.deepEqual(turn.settings, { tools: [weather], ...settings });
  assert.deepEqual(remarks, [{ type: "left-out", what: "tool web_search" }]);
});

test("the tool choice is omitted when no tool is left", () => {
  const settings = { toolChoice: { type: "auto" }, parallelToolCalls: true, temperature: 0 } as const;
  const { turn } = fit(toTurn({ tools: [search], ...settings }));
  assert.deepEqual(turn.settings, {
    temperature: 0,
    tools: [],
    toolChoice: undefined,
    parallelToolCalls: undefined,
    native: undefined,
  });
});

test("a forced function is preserved when other tools are omitted", () => {
  const choice = { type: "tool", name: "weather" } as const;
  assert.deepEqual(fit(toTurn({ tools: [search, weather], toolChoice: choice })).turn.settings.toolChoice, choice);
  const strange: Tool = { type: "other", extra: { dialect: "chat", fields: { type: "strange" } } };
  const forced = toTurn({ tools: [search, strange], toolChoice: { type: "tool", name: "web_search" } });
  assert.deepEqual(fit(forced, "responses").turn.settings.toolChoice, forced.settings.toolChoice);
});

test("a choice that forces a tool the adapter does not support is refused, and the error names the tool", () => {
  const choice = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } } as const;
  const turn = toTurn({ tools: [search], toolChoice: choice });
  assert.throws(() => fit(turn, "chat"), {
    code: "unsupported_parameter",
    param: "tool_choice",
    message: /'web_search', but the adapter behind this model has no such tool/,
  });
  assert.equal(fit(turn, "responses").turn, turn);
});

test("a required tool call cannot be omitted", () => {
  const refusal = { code: "unsupported_parameter", param: "tool_choice", message: /'web_search'/ };
  assert.throws(() => fit(toTurn({ tools: [search], toolChoice: { type: "required" } })), refusal);
  const tools = [weather, search];
  assert.throws(() => fit(toTurn({ tools, ...allow("required", "web_search") })), refusal);
  const none = { ...refusal, message: /\(none is given\)/ };
  assert.throws(() => fit(toTurn({ tools, ...allow("required", "other") })), none);
});

test("tools that are not allowed never reach the adapter", () => {
  for (const mode of ["auto", "required"] as const) {
    const { turn, remarks } = fit(toTurn({ tools: [weather, clock], ...allow(mode, "clock") }), "chat");
    assert.deepEqual(turn.settings.tools, [clock]);
    assert.deepEqual(turn.settings.toolChoice, { type: mode });
    assert.deepEqual(remarks, []);
  }
});

test("an allowed tool that the adapter does not support is omitted and reported; a disallowed one is omitted silently", () => {
  const tools = [weather, search, clock];
  const allowed = fit(toTurn({ tools, ...allow("auto", "clock", "web_search") }));
  assert.deepEqual(allowed.turn.settings.tools, [clock]);
  assert.deepEqual(allowed.remarks, [{ type: "left-out", what: "tool web_search" }]);
  assert.deepEqual(fit(toTurn({ tools, ...allow("auto", "clock") })).remarks, []);
});

test("of two MCP servers only the allowed one reaches the adapter, also in the caller's native fields", () => {
  const servers = ["wiki", "mail"].map((label): Tool & { type: "other" } => {
    const fields = { type: "mcp", server_label: label };
    return { type: "other", name: `mcp ${label}`, extra: { dialect: "responses", fields } };
  });
  const native = { dialect: "responses", fields: { tools: servers.map(({ extra }) => extra.fields) } } as const;
  const asked = toTurn({ tools: servers, ...allow("auto", "mcp mail"), native });
  const { settings } = fit(asked, "responses").turn;
  assert.deepEqual(settings.tools, [servers[1]]);
  assert.deepEqual(settings.native?.fields["tools"], [{ type: "mcp", server_label: "mail" }]);
  assert.deepEqual(fit(asked, "chat").remarks, [{ type: "left-out", what: "tool mcp mail" }]);
});

test("the allowed tools also apply to the caller's native fields", () => {
  const fields = {
    tools: [{ function: { name: "weather" } }, { function: { name: "clock" }, own: 1 }],
    tool_choice: { type: "allowed_tools" },
    parallel_tool_calls: false,
    logit_bias: {},
  };
  const native = { dialect: "chat", fields } as const;
  const some = fit(toTurn({ tools: [weather, clock], ...allow("required", "clock"), native }), "chat");
  assert.deepEqual(some.turn.settings.native?.fields, {
    tools: [{ function: { name: "clock" }, own: 1 }],
    tool_choice: "required",
    parallel_tool_calls: false,
    logit_bias: {},
  });
  const none = fit(toTurn({ tools: [weather, clock], ...allow("auto"), native }), "chat");
  assert.equal(JSON.stringify(none.turn.settings.native), '{"dialect":"chat","fields":{"logit_bias":{}}}');
});

test("a compacted conversation is sent as plain text to an adapter without compaction items", () => {
  const before: Item = { type: "message", role: "user", content: "hi" };
  const { turn } = fit(toTurn({}, [before, { type: "compaction", summary: "We met.", encrypted: "x" }]), "chat");
  assert.deepEqual(turn.items, [
    before,
    { type: "message", role: "user", content: "Summary of the conversation so far:\nWe met." },
  ]);
});

test("a compaction that only its creator can read is refused by every other adapter", () => {
  assert.throws(() => fit(toTurn({}, [{ type: "compaction", summary: "", encrypted: "x" }]), "chat"), {
    code: "unsupported_parameter",
    status: 400,
    param: "input",
    message: /'compaction'/,
  });
});
