import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Delta } from "../../src/core/delta.ts";
import type { Dialect, Item } from "../../src/core/item.ts";
import type { Adapter, Remark } from "../../src/core/ports.ts";
import { createRoute } from "../../src/core/route/route.ts";
import { createModelNames } from "../../src/core/route/models.ts";
import { adaptTurn } from "../../src/core/route/adapt.ts";
import type { Settings, Tool, Turn } from "../../src/core/turn.ts";

type Group = Extract<Tool, { type: "other" }>;

function toGroup(name: string, tools: readonly Tool[], description?: string): Group {
  const fields = { type: "namespace", name, tools: tools.map((tool) => ({ ...tool })) };
  return {
    type: "other",
    name: `namespace ${name}`,
    group: { name, description, tools },
    extra: { dialect: "responses", fields },
  };
}

const look: Tool = { type: "function", name: "look", description: "Looks.", parameters: {}, strict: true };
const go: Tool = { type: "function", name: "go" };
const browser = toGroup("browser", [look, go], "A browser.");
const plain: Tool = { type: "function", name: "look" };

function toTurn(settings: Partial<Settings>, items: readonly Item[] = []): Turn {
  return { id: "resp_1", model: "m", items, settings: { tools: [], ...settings }, stream: false };
}

function fit(turn: Turn, ...speaks: Dialect[]) {
  const remarks: Remark[] = [];
  return { ...adaptTurn(turn, { speaks }, (remark) => remarks.push(remark)), remarks };
}

function namesOf({ settings }: Turn): readonly (string | undefined)[] {
  return settings.tools.map(({ name }) => name);
}

function callOf(name: string, group?: string): Item {
  return { type: "tool-call", kind: "function", callId: "c", name, arguments: "{}", ...(group && { group }) };
}

test("an adapter without tool groups gets each function separately, with the group's description in front", () => {
  const { turn, remarks } = fit(toTurn({ tools: [plain, browser], toolChoice: { type: "auto" } }), "chat");
  assert.deepEqual(turn.settings.tools, [
    plain,
    { ...look, name: "browser__look", description: "A browser.\n\nLooks." },
    { ...go, name: "browser__go", description: "A browser." },
  ]);
  assert.deepEqual([turn.settings.toolChoice, remarks], [{ type: "auto" }, []]);
});

test("a search in a group, as an archive may have it, is a function to an adapter that knows neither", () => {
  const items = [
    { type: "tool-call", kind: "search", callId: "c", name: "find", group: "n", arguments: "{}" },
  ] as const;
  assert.deepEqual(fit(toTurn({}, items), "chat").turn.items, [callOf("n__find")]);
});

test("an adapter with tool groups gets them and their calls unchanged", () => {
  const turn = toTurn({ tools: [browser] }, [callOf("look", "browser")]);
  assert.deepEqual(fit(turn, "responses"), { turn, restore: undefined, remarks: [] });
  assert.equal(fit(turn, "responses").turn, turn);
});

test("the group's description is omitted if the result would be too long for a chat server", () => {
  const group = toGroup("browser", [look, go], "x".repeat(1_017));
  const [first, second] = fit(toTurn({ tools: [group] })).turn.settings.tools;
  assert.deepEqual(first, { ...look, name: "browser__look" });
  assert.equal(second?.type === "function" && second.description?.length, 1_017);
});

test("calls in the history use the same name as their tool, offered or not, and new calls get the original name back", () => {
  const items = [callOf("look", "browser"), callOf("look"), callOf("read", "files")];
  const { turn, restore } = fit(toTurn({ tools: [browser] }, items));
  assert.deepEqual(turn.items, [callOf("browser__look"), callOf("look"), callOf("files__read")]);
  const said: Delta[] = ["browser__look", "look", "files__read"].map((name, index) => ({
    type: "tool-call",
    index,
    name,
    extra: { dialect: "chat", fields: { signature: "s" } },
  }));
  const text: Delta = { type: "tool-arguments", index: 0, text: "browser__look" };
  assert.deepEqual(restore?.([...said, text]), [
    { ...said[0], name: "look", group: "browser" },
    said[1],
    { ...said[2], name: "read", group: "files" },
    text,
  ]);
});

test("a turn without groups is passed on unchanged, and so is its answer", () => {
  const turn = toTurn({ tools: [plain] }, [callOf("look")]);
  assert.deepEqual(fit(turn), { turn, restore: undefined, remarks: [] });
  assert.equal(fit(turn).turn, turn);
});

const search: Tool = { type: "other", extra: { dialect: "responses", fields: { type: "web_search" } } };
const exec: Tool = { type: "custom", name: "exec", description: "Runs it.", format: { type: "text" } };

test("a tool of another dialect in a group is omitted and reported", () => {
  const { turn, remarks } = fit(toTurn({ tools: [toGroup("n", [exec, go, search])] }));
  assert.deepEqual(namesOf(turn), ["n__exec", "n__go"]);
  assert.deepEqual(remarks, [{ type: "left-out", what: "tool n web_search" }]);
});

test("a custom tool of a group is offered separately too, and its call gets its own name, group and kind back", () => {
  const called: Item = { type: "tool-call", kind: "custom", callId: "c", name: "exec", group: "n", arguments: "ls" };
  const { turn, restore } = fit(toTurn({ tools: [toGroup("n", [exec], "Tools.")] }, [called]), "chat");
  assert.deepEqual(turn.settings.tools, [{ ...exec, name: "n__exec", description: "Tools.\n\nRuns it." }]);
  const { group: _, ...alone } = called;
  assert.deepEqual(turn.items, [{ ...alone, name: "n__exec" }]);
  const said = { type: "tool-call", index: 0, name: "n__exec", kind: "custom" } as const;
  assert.deepEqual(restore?.([said]), [{ ...said, name: "exec", group: "n" }]);
});

test("the choice of a tool in a group is preserved", () => {
  const forced = { type: "tool", name: "browser go" } as const;
  const turn = toTurn({ tools: [plain, browser], toolChoice: forced });
  assert.deepEqual(fit(turn, "chat").turn.settings.toolChoice, { type: "tool", name: "browser__go" });
  const free = toTurn({ tools: [toGroup("n", [exec, go])], toolChoice: { type: "tool", name: "n exec" } });
  assert.deepEqual(fit(free).turn.settings.toolChoice, { type: "tool", name: "n__exec" });
  const other = { type: "tool", name: "n web_search" } as const;
  const unfit = toTurn({ tools: [toGroup("n", [search, go])], toolChoice: other });
  assert.throws(() => fit(unfit), { code: "unsupported_parameter", param: "tool_choice", message: /'n web_search'/ });
});

test("only the allowed tools of a group reach the adapter, whether it supports groups or not", () => {
  const allow = (...names: string[]) => ({ toolChoice: { type: "required" }, allowedTools: names }) as const;
  const native = { dialect: "responses", fields: { tools: [{ name: "look" }, browser.extra.fields] } } as const;
  const settings = { tools: [plain, browser], native };
  const some = toTurn({ ...settings, ...allow("browser go") });
  assert.deepEqual(namesOf(fit(some).turn), ["browser__go"]);
  assert.deepEqual(fit(some).turn.settings.toolChoice, { type: "required" });
  const known = fit(some, "responses").turn.settings;
  const narrowed = { type: "namespace", name: "browser", tools: [{ ...go }] };
  assert.deepEqual(known.tools, [
    { ...toGroup("browser", [go], "A browser."), extra: { dialect: "responses", fields: narrowed } },
  ]);
  assert.deepEqual(known.native, { ...native, fields: { tools: [narrowed], tool_choice: "required" } });
  const all = toTurn({ ...settings, ...allow("namespace browser") });
  assert.deepEqual(namesOf(fit(all).turn), ["browser__look", "browser__go"]);
  assert.deepEqual(fit(all, "responses").turn.settings.native?.fields["tools"], [browser.extra.fields]);
  const none = toTurn({ ...settings, ...allow("look") });
  for (const speaks of [[], ["responses"]] as const) assert.deepEqual(namesOf(fit(none, ...speaks).turn), ["look"]);
});

test("a name that is taken, too long or has invalid characters is shortened the same way in every turn", () => {
  const taken: Tool = { type: "function", name: "browser__look" };
  const long = "l".repeat(70);
  const groups = [
    toGroup(long, [go]),
    toGroup("my tools/β", [go]),
    toGroup("mcp__files__", [go, { ...go, name: long }]),
  ];
  assert.deepEqual(namesOf(fit(toTurn({ tools: [browser, taken, ...groups] })).turn), [
    "browser__look_a4d62c5a",
    "browser__go",
    "browser__look",
    "llllllllllllllllllll__go_a5b0b2d5",
    "my_tools____go_41982ec5",
    "mcp__files__go",
    `mcp__files____${"l".repeat(41)}_efcfba10`,
  ]);
});

test("a tool has the same name whether or not others are allowed beside it", () => {
  const tools = [toGroup("a", [{ type: "function", name: "b__go" }]), toGroup("a__b", [go])];
  const [, name] = namesOf(fit(toTurn({ tools })).turn);
  assert.notEqual(name, "a__b__go");
  const allowed = toTurn({ tools, toolChoice: { type: "auto" }, allowedTools: ["a__b go"] });
  assert.deepEqual(namesOf(fit(allowed).turn), [name]);
});

test("whatever tools are called, each name is valid for a chat server, unique and can be mapped back", () => {
  const name = fc.oneof(
    fc.string({ minLength: 1, maxLength: 90 }),
    fc.constantFrom("a", "a_", "a__", "b", "a__b", "b__a", "_", "é", "è"),
  );
  const groups = fc.uniqueArray(fc.tuple(name, fc.uniqueArray(name, { minLength: 1 })), {
    selector: ([group]) => group,
  });
  fc.assert(
    fc.property(groups, fc.uniqueArray(fc.constantFrom("a__b", "b__a", "a", "a__a__b")), (given, alone) => {
      const own = given.flatMap(([group, names]) => names.map((name) => ({ group, name })));
      const tools = [
        ...given.map(([group, names]) =>
          toGroup(
            group,
            names.map((name) => ({ type: "function", name })),
          ),
        ),
        ...alone.map((name): Tool => ({ type: "function", name })),
      ];
      const { turn, restore } = fit(toTurn({ tools }));
      const names = namesOf(turn);
      assert.equal(new Set(names).size, own.length + alone.length);
      for (const joined of names) assert.match(joined ?? "", /^[A-Za-z0-9_-]{1,64}$/);
      assert.deepEqual(fit(toTurn({ tools })).turn, turn);
      const back = (restore ?? ((deltas) => deltas))(
        names.map((joined, index) => ({ type: "tool-call", index, name: joined ?? "" })),
      );
      assert.deepEqual(
        back.map((delta) => delta.type === "tool-call" && [delta.group, delta.name]),
        [...own.map(({ group, name }) => [group, name]), ...alone.map((name) => [undefined, name])],
      );
    }),
  );
});

test("a route restores the groups of calls, counts tools as the model sees them, and stops an abandoned adapter", async () => {
  const counted: Turn[] = [];
  let left = 0;
  const adapter: Adapter = {
    async *stream() {
      try {
        yield [{ type: "tool-call", index: 0, name: "browser__go" }];
        yield [{ type: "tool-call", index: 1, name: "browser__look" }];
        yield [{ type: "text", text: "never" }];
      } finally {
        left++;
      }
    },
    async countTokens(turn) {
      counted.push(turn);
      return 1;
    },
  };
  const route = createRoute({
    lanes: [{ name: "main", adapter, models: createModelNames({}), maxAnswerCharacters: 1_000_000 }],
    defaultLane: "main",
    now: () => new Date(0),
    random: () => 0,
    wait: async () => {},
  });
  const { signal } = new AbortController();
  const turn = toTurn({ tools: [browser] });
  const received: Delta[] = [];
  for await (const batch of route.stream(turn, signal)) {
    received.push(...batch);
    if (received.length === 2) break;
  }
  assert.deepEqual(received, [
    { type: "tool-call", index: 0, name: "go", group: "browser" },
    { type: "tool-call", index: 1, name: "look", group: "browser" },
  ]);
  assert.equal(left, 1);
  await route.countTokens(turn, signal);
  assert.deepEqual(counted.map(namesOf), [["browser__look", "browser__go"]]);
});
