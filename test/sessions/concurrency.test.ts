import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as hop } from "node:timers/promises";
import type { Gateway } from "../../src/core/gateway.ts";
import { type Item, textOf } from "../../src/core/item.ts";
import type { Adapter, History } from "../../src/core/ports.ts";
import type { Answer } from "../../src/core/turn.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createRandom } from "../random.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const system = (content: string): Item => ({ type: "message", role: "system", content });

/** Answers with the last question, after some turns of the event loop, and records what it saw of each turn. */
function createSlowAdapter(): Adapter & { readonly seen: Map<string, readonly Item[]> } {
  const random = createRandom(7);
  const seen = new Map<string, readonly Item[]>();
  return {
    seen,
    async *stream(turn, signal) {
      seen.set(turn.id, turn.items);
      const last = turn.items.at(-1);
      for (let left = random(6); left > 0; left--) await hop();
      yield [{ type: "text", text: `answer to ` }];
      for (let left = random(6); left > 0; left--) await hop();
      signal.throwIfAborted();
      yield [{ type: "text", text: last?.type === "message" ? textOf(last.content) : "nothing" }];
    },
  };
}

function openGateway(maxQueuedPerThread: number, alwaysResends = false) {
  const adapter = createSlowAdapter();
  let count = 0;
  const gateway = makeGateway({
    adapter,
    store: createMemoryStore(),
    limits: { maxQueuedPerThread },
    alwaysResends,
    now: () => new Date(0),
    newSessionId: () => `conv_${++count}`,
  });
  const talk = async (hint: string, items: readonly Item[], signal?: AbortSignal): Promise<Talked> => {
    const turnId = `resp_${++count}`;
    const answer = await drain(gateway, turnId, hint, items, signal);
    return { ...answer, seen: adapter.seen.get(turnId) ?? [] };
  };
  return { adapter, talk };
}

interface Talked {
  readonly history: History;
  readonly answer: Answer;
  readonly seen: readonly Item[];
}

async function drain(
  gateway: Gateway,
  turnId: string,
  hint: string,
  items: readonly Item[],
  signal = new AbortController().signal,
): Promise<Omit<Talked, "seen">> {
  const { about, events } = await gateway.answer(
    { model: "m", items, itemsParam: "messages", settings: { tools: [] }, stream: true, keep: "in-session" },
    { turnId, owner: "ann", hint, signal },
  );
  for await (const batch of events) {
    const last = batch.at(-1);
    if (last?.type === "turn-end") return { history: about.history ?? "stateless", answer: last.answer };
  }
  throw new Error("the stream ended without a turn-end");
}

for (const known of ["from the start", "once one of them has resent its history"] as const) {
  test(`fifty parallel conversations of two clients under one name never see each other's messages, ${known}`, async () => {
    const { talk } = openGateway(50, known === "from the start");
    if (known !== "from the start") {
      const opening = [user("opening")];
      opening.push(...(await talk("app", opening)).answer.items, user("opening goes on"));
      assert.equal((await talk("app", opening)).history, "matched");
    }

    async function converse(client: string, conversation: number): Promise<void> {
      const known: Item[] = [];
      for (let turn = 0; turn < 8; turn++) {
        // Every conversation starts alike: only what follows distinguishes them.
        known.push(user(turn === 0 ? "hi" : `${client} ${conversation} turn ${turn}`));
        const asked = turn % 3 === 0 ? [system(`serve ${client}`), ...known] : known;
        const { history, answer, seen } = await talk("app", asked);
        assert.deepEqual(
          seen.filter((item) => item.type !== "message" || item.role !== "system"),
          known,
        );
        // Conversations with the same content so far are one thread, and branch where they differ.
        if (turn !== 1) assert.equal(history, turn === 0 ? "new" : "matched");
        assert.equal(answer.status, "completed");
        known.push(...answer.items);
      }
    }

    const conversations = Array.from({ length: 50 }, (_, index) => converse(index % 2 === 0 ? "left" : "right", index));
    await Promise.all(conversations);
  });
}

test("three hundred parallel requests of one delta client are answered in order, each with everything before it", async () => {
  const total = 300;
  const { talk } = openGateway(total);
  const talks = await Promise.all(Array.from({ length: total }, (_, index) => talk("ann", [user(`word ${index}`)])));
  const whole: Item[] = [];
  for (const [index, { history, answer, seen }] of talks.entries()) {
    whole.push(user(`word ${index}`));
    assert.equal(history, index === 0 ? "new" : "continued");
    assert.deepEqual(seen, whole);
    whole.push(...answer.items);
  }
});

test("a request beyond the queue's limit is refused as session_busy, and leaves nothing behind", async () => {
  const { talk } = openGateway(4);
  const talks = await Promise.allSettled(Array.from({ length: 9 }, (_, index) => talk("ann", [user(`word ${index}`)])));
  const busy = talks.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  assert.deepEqual(
    busy.map(({ code, status, retryAfterSeconds }) => ({ code, status, retryAfterSeconds })),
    Array.from({ length: 4 }, () => ({ code: "session_busy", status: 429, retryAfterSeconds: 1 })),
  );
  const { seen } = await talk("ann", [user("after")]);
  const asked = seen.flatMap((item) => (item.type === "message" && item.role === "user" ? [item.content] : []));
  assert.deepEqual(asked, ["word 0", "word 1", "word 2", "word 3", "word 4", "after"]);
});

test("requests that leave the queue or their stream make room, and no later turn sees them", async () => {
  const { talk } = openGateway(300);
  const random = createRandom(11);
  const talks = Array.from({ length: 60 }, async (_, index) => {
    const leaving = new AbortController();
    const talked = talk("ann", [user(`word ${index}`)], leaving.signal).then(
      ({ answer }) => answer.status === "completed",
      () => false,
    );
    if (index % 3 !== 0) return talked;
    for (let left = random(120); left > 0; left--) await hop();
    leaving.abort(new Error("gone"));
    return talked;
  });
  const stored = (await Promise.all(talks)).flatMap((isStored, index) => (isStored ? [`word ${index}`] : []));
  const { seen } = await talk("ann", [user("after")]);
  const asked = seen.flatMap((item) => (item.type === "message" && item.role === "user" ? [item.content] : []));
  assert.deepEqual(asked, [...stored, "after"]);
  assert.ok(stored.length < 60, "some have left");
});
