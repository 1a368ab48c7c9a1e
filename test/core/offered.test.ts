/** Tools that come with the items of a turn rather than with its request, and the search that finds them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Dialect, Item } from "../../src/core/item.ts";
import type { Remark } from "../../src/core/ports.ts";
import { adaptTurn } from "../../src/core/route/adapt.ts";
import type { FunctionTool, Settings, Tool, ToolChoice, Turn } from "../../src/core/turn.ts";

const weather: Tool = { type: "function", name: "weather", description: "Today's." };
const clock: Tool = { type: "function", name: "clock" };
const hosted: Tool = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } };
const asked: Item = { type: "message", role: "user", content: "hi" };
const native = { dialect: "responses", fields: {} } as const;

function toGroup(name: string, tools: readonly Tool[], description?: string): Tool {
  const extra = { dialect: "responses", fields: { type: "namespace", name } } as const;
  return { type: "other", name: `namespace ${name}`, group: { name, description, tools }, extra };
}

function bring(...tools: Tool[]): Item {
  return {
    type: "other",
    extra: { dialect: "responses", fields: { type: "additional_tools" } },
    tools,
    steers: true,
  };
}

const lookUp: FunctionTool = { type: "function", name: "tool_search", description: "Finds.", parameters: {} };
const search: Tool = {
  type: "other",
  search: lookUp,
  extra: { dialect: "responses", fields: { type: "tool_search", execution: "client" } },
};
const called: Item = {
  type: "tool-call",
  kind: "search",
  callId: "c",
  name: "tool_search",
  arguments: '{"query":"w"}',
};

function found(...tools: Tool[]): Item {
  const extra = { dialect: "responses", fields: { tools } } as const;
  return { type: "tool-output", kind: "search", callId: "c", output: "[]", tools, extra };
}

function toTurn(settings: Partial<Settings>, items: readonly Item[]): Turn {
  return { id: "resp_1", model: "m", items, settings: { tools: [], ...settings }, stream: false };
}

function fit(turn: Turn, ...speaks: Dialect[]) {
  const remarks: Remark[] = [];
  return { ...adaptTurn(turn, { speaks }, (remark) => remarks.push(remark)), remarks };
}

test("tools of items are offered with those of the request, and the items themselves are omitted silently", () => {
  const items = [bring(clock, toGroup("n", [clock])), asked, called, found(hosted)];
  const { turn: adapted, remarks } = fit(toTurn({ tools: [weather], native }, items), "chat");
  assert.deepEqual(adapted.settings.tools, [weather, clock, { ...clock, name: "n__clock", description: undefined }]);
  assert.deepEqual(adapted.items[0], asked);
  assert.deepEqual(remarks, [{ type: "left-out", what: "tool web_search" }]);
});

test("an adapter that knows such items gets them unchanged, and nothing is offered twice", () => {
  const turn = toTurn({ tools: [weather, search] }, [bring(clock), asked, called, found(hosted)]);
  assert.equal(fit(turn, "responses").turn, turn);
});

test("of several definitions of a name the newest is offered, in the position of the first", () => {
  const newer: Tool = { ...weather, description: "Tomorrow's." };
  const newest: Tool = { type: "custom", name: "weather" };
  const items = [bring(newer), asked, bring(newest)];
  assert.deepEqual(fit(toTurn({ tools: [weather, clock] }, items)).turn.settings.tools, [newest, clock]);
  assert.deepEqual(fit(toTurn({}, [bring(weather), bring(newer), asked])).turn.settings.tools, [newer]);
});

test("a group that comes in parts includes all of them, each tool with its newest definition", () => {
  const newer: Tool = { ...weather, description: "Tomorrow's." };
  const parts = [toGroup("n", [weather], "Some."), toGroup("n", [clock], "All."), toGroup("n", [newer])];
  const { settings } = fit(toTurn({}, [bring(...parts), asked])).turn;
  assert.deepEqual(settings.tools, [
    { ...newer, name: "n__weather", description: "All.\n\nTomorrow's." },
    { ...clock, name: "n__clock", description: "All." },
  ]);
});

test("a function with the name of a hosted tool's type is a different tool", () => {
  const own: Tool = { type: "function", name: "web_search" };
  const { turn, remarks } = fit(toTurn({ tools: [own] }, [bring(hosted), bring(hosted), asked]));
  assert.deepEqual(turn.settings.tools, [own]);
  assert.deepEqual(remarks, [{ type: "left-out", what: "tool web_search" }]);
});

test("a choice may name a tool of an item, and the allowed tools apply to it", () => {
  const items = [bring(clock, toGroup("n", [weather])), asked];
  const choose = (toolChoice: ToolChoice, allowedTools?: readonly string[]) =>
    fit(toTurn({ tools: [weather], toolChoice, allowedTools, native }, items)).turn.settings;
  assert.deepEqual(choose({ type: "tool", name: "n weather" }).toolChoice, { type: "tool", name: "n__weather" });
  const allowed = choose({ type: "required" }, ["clock"]);
  assert.deepEqual([allowed.tools, allowed.toolChoice], [[clock], { type: "required" }]);
});

test("a caller that continues in another dialect is not offered tools that it does not know", () => {
  const chat = { dialect: "chat", fields: { tools: [{ function: { name: "weather" } }] } } as const;
  const { turn } = fit(toTurn({ tools: [weather], native: chat }, [bring(clock), asked]), "chat");
  assert.deepEqual(turn.settings.tools, [weather]);
});

test("a deferred tool is offered once a search has found it, or when there is no search", () => {
  const later: Tool = { ...weather, deferred: true };
  const tools = [later, clock, toGroup("n", [later, clock]), toGroup("o", [later])];
  const names = (turn: Turn) => fit(turn, "chat").turn.settings.tools.map((tool) => "name" in tool && tool.name);
  assert.deepEqual(names(toTurn({ tools: [...tools, search] }, [asked])), ["clock", "n__clock", "tool_search"]);
  const all = toTurn({ tools: [...tools, search] }, [asked, called, found(later, toGroup("o", [later]))]);
  assert.deepEqual(names(all), ["clock", "n__clock", "tool_search", "weather", "o__weather"]);
  assert.deepEqual(names(toTurn({ tools }, [asked])), ["weather", "clock", "n__weather", "n__clock", "o__weather"]);
  const turn = toTurn({ tools: [...tools, search] }, [asked]);
  assert.equal(fit(turn, "responses").turn, turn);
});

test("a search run by the caller is offered as a function, and a call of it comes back as a search", () => {
  const { turn, restore, remarks } = fit(toTurn({ tools: [weather, search] }, [asked]), "chat");
  assert.deepEqual(turn.settings.tools, [weather, lookUp]);
  const said = { type: "tool-call", index: 0, name: "tool_search", kind: "function" } as const;
  const other = { ...said, index: 1, name: "weather" };
  assert.deepEqual(restore?.([said, other]), [{ ...said, kind: "search" }, other]);
  assert.deepEqual(remarks, []);
});

test("the caller's own function with the search's name takes precedence, and the search is omitted and reported", () => {
  const own: Tool = { type: "function", name: "tool_search" };
  const { turn, restore, remarks } = fit(toTurn({ tools: [search, own] }, [asked]), "chat");
  assert.deepEqual(turn.settings.tools, [own]);
  assert.equal(restore, undefined);
  assert.deepEqual(remarks, [{ type: "left-out", what: "tool tool_search" }]);
});

test("a search in the history is shown as a function call, and its results briefly, by their offered names", () => {
  const tools = [toGroup("n", [{ ...weather, description: "x".repeat(300) }], "All."), clock, hosted];
  const { turn } = fit(toTurn({ tools: [search] }, [asked, called, found(...tools)]), "chat");
  const list = [{ name: "n__weather", description: `${"x".repeat(200)}…` }, { name: "clock" }];
  assert.deepEqual(turn.items, [
    asked,
    { ...called, kind: "function" },
    { type: "tool-output", kind: "function", callId: "c", output: JSON.stringify(list) },
  ]);
  assert.deepEqual(
    turn.settings.tools.map(({ name }) => name),
    ["tool_search", "n__weather", "clock"],
  );
});
