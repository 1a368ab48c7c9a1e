import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { createChain } from "../../src/core/place/chain.ts";
import { findPlace, type Place } from "../../src/core/place/place.ts";
import { createQueue } from "../../src/core/place/queue.ts";
import { createThreads } from "../../src/core/place/threads.ts";
import type { Session } from "../../src/core/store.ts";
import type { Ask } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter } from "../scripted.ts";
import { createMemoryStore } from "../stores/memory.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });
const call: Item = { type: "tool-call", kind: "function", callId: "c1", name: "f", arguments: "{}" };
const output: Item = { type: "tool-output", kind: "function", callId: "c1", output: "done" };
const exchange = (text: string): Item[] => [user(text), text.endsWith("CALL") ? call : assistant(`re: ${text}`)];

/** A model that answers `re: <the last user text>`, or calls a tool on `CALL`. */
function createWorld() {
  const store = createMemoryStore();
  const newId = createIds(() => new Date());
  const adapter = createScriptedAdapter(async function* ({ items }) {
    const last = items.at(-1);
    const text = last?.type === "message" ? String(last.content) : "";
    if (!text.endsWith("CALL")) yield [{ type: "text", text: `re: ${text}` }];
    else yield [{ type: "tool-call", index: 0, callId: "c1", name: "f" }];
  });
  const gateway = makeGateway({ adapter, store });
  const parts = {
    store,
    chain: createChain((text) => hash("sha256", text, "base64url").slice(0, 22)),
    queue: createQueue(() => 16),
    newSessionId: () => newId("conv"),
    unstored: new Map(),
    threads: createThreads(),
    alwaysResends: () => false,
  };
  return {
    async say(sent: Sent): Promise<string> {
      const turnId = newId("resp");
      const { events } = await gateway.answer(toAsk(sent), { turnId, ...toRequester(sent) });
      await Array.fromAsync(events);
      return turnId;
    },
    session: () => store.findSession("ann", "user:u"),
    place: (sent: Sent): Promise<Place> => findPlace(parts, toAsk(sent), toRequester(sent), []),
  };
}

interface Sent {
  readonly items: readonly Item[];
  readonly rest?: Partial<Ask>;
  readonly hasHint?: boolean;
}

function toAsk({ items, rest }: Sent): Ask<Item> {
  const common = { model: "m", itemsParam: "messages", settings: { tools: [] }, stream: false } as const;
  return { ...common, keep: "in-session", ...rest, items };
}

function toRequester({ hasHint = true }: Sent) {
  return { owner: "ann", hint: hasHint ? "user:u" : undefined, signal: new AbortController().signal };
}

/** A request, and which turn and which of its items the table means. */
interface Case extends Sent {
  readonly turn?: string | undefined;
  readonly base?: readonly Item[];
}

interface Scenario {
  /** What was said in the session before. */
  readonly texts?: readonly string[];
  readonly first?: readonly Item[];
  ask(turns: readonly string[], session: Session | undefined, say: Say): Case | Promise<Case>;
}

type Say = ReturnType<typeof createWorld>["say"];

const texts = ["one", "two", "three"];
const all = texts.flatMap(exchange);
const next = user("next");
const history = exchange("elsewhere");

/** By the first two columns of the table. */
const scenarios: Readonly<Record<string, Scenario>> = {
  "names a response, that one's": {
    texts,
    ask: ([, second]) => ({ items: [next], rest: { previousId: second }, hasHint: false, turn: second }),
  },
  "names a response, none": {
    async ask(_turns, _session, say) {
      const alone = await say({ items: [user("alone")], rest: { keep: "yes" }, hasHint: false });
      return { items: [next], rest: { previousId: alone }, turn: alone };
    },
  },
  "names a conversation, that one": {
    texts,
    ask: (_turns, session) => ({ items: [next], rest: { conversationId: session?.id }, hasHint: false }),
  },
  "the same, outputs given again, that one": {
    texts: ["one", "CALL"],
    async ask([, called], session, say) {
      const rest = { conversationId: session?.id };
      await say({ items: [output], rest, hasHint: false });
      return { items: [output], rest, hasHint: false, turn: called };
    },
  },
  "the same, what led to calls again, that one": {
    texts: ["one", "CALL"],
    ask: ([first], session) => ({
      items: [user("CALL")],
      rest: { conversationId: session?.id },
      hasHint: false,
      turn: first,
    }),
  },
  "hint, only new items, new": { ask: () => ({ items: [next] }) },
  "hint, a history, new": { ask: () => ({ items: [...history, next], base: history }) },
  "hint, only new items, not resent": { texts, ask: () => ({ items: [next] }) },
  "hint, only new items, resent": { texts, ask: () => ({ items: [next] }) },
  "hint, a tool's output first, any": { texts: ["one", "CALL"], ask: () => ({ items: [output] }) },
  "hint, outputs given again, any": {
    texts: ["one", "CALL"],
    async ask([, called], _session, say) {
      await say({ items: [output] });
      return { items: [output], turn: called };
    },
  },
  "hint, the first question for a title, not resent": {
    texts: ["one"],
    first: [system("You help with code.")],
    ask: () => ({ items: [system("Make a title."), user("one")] }),
  },
  "hint, the steps of the newest turn, not resent": {
    texts: ["one", "two CALL"],
    ask: () => ({ items: [...exchange("two CALL"), output] }),
  },
  "hint, all up to the end of a thread, any": {
    texts,
    ask: ([, , third]) => ({ items: [...all, next], turn: third }),
  },
  "hint, the last exchanges of a thread, any": {
    texts,
    ask: ([, , third]) => ({ items: [...all.slice(2), next], turn: third }),
  },
  "hint, all up to an older turn, any": {
    texts,
    ask: ([, second]) => ({ items: [...all.slice(0, 4), next], turn: second }),
  },
  "hint, another end after an older turn, any": {
    texts,
    ask: ([, second]) => ({ items: [...all.slice(0, 4), ...history, next], turn: second, base: history }),
  },
  "hint, a history unknown there, any": { texts, ask: () => ({ items: [...history, next], base: history }) },
  "names nothing, but is to be stored, none": { ask: () => ({ items: [next], rest: { keep: "yes" }, hasHint: false }) },
  "names nothing, none": { ask: () => ({ items: [next], hasHint: false }) },
};

/** The cells of the table at the head of place.ts. */
function readTable(): readonly (readonly string[])[] {
  const source = readFileSync(new URL("../../src/core/place/place.ts", import.meta.url), "utf8");
  const lines = source.split("\n").filter((line) => line.startsWith(" * | "));
  return lines.slice(2).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

test("a request finds its place as the table says, in sessions of callers that show their history and of others", async () => {
  const table = readTable();
  assert.deepEqual(
    table.map(([request, session]) => `${request}, ${session}`),
    Object.keys(scenarios),
  );
  for (const [request, state, ...expected] of table) {
    const name = `${request}, ${state}`;
    const scenario = scenarios[name]!;
    for (const resends of state === "any" ? [false, true] : [state === "resent"]) {
      const { say, session: readSession, place: find } = createWorld();
      const turns: string[] = [];
      const said = [...(scenario.first ?? [])];
      for (const text of scenario.texts ?? []) {
        turns.push(await say({ items: [...(resends || turns.length === 0 ? said : []), user(text)] }));
        said.push(...exchange(text));
      }
      const session = await readSession();
      assert.equal(session?.resends ?? false, resends, name);
      const { turn, base = [], ...sent } = await scenario.ask(turns, session, say);
      const place = await find(sent);
      const tip = place.path.tip?.id;
      const path = tip === undefined ? "none" : tip === turn ? "that turn" : tip === session?.tip ? "newest turn" : tip;
      const shown = place.base.length === 0 ? "none" : expected[2];
      assert.deepEqual([place.history, path, shown, place.move?.otherwise ?? "-"], expected, name);
      assert.deepEqual(place.base, base, name);
      assert.deepEqual(
        [...place.base, ...place.input],
        sent.items.slice(-place.base.length - place.input.length),
        name,
      );
    }
  }
});
