/** Matching by the end of a thread. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import { createChain } from "../../src/core/place/chain.ts";
import { matchStep, matchTail } from "../../src/core/place/ending.ts";
import { extend, toPath } from "../../src/core/place/path.ts";
import type { StoredTurn } from "../../src/core/store.ts";
import { createMemoryStore } from "../stores/memory.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });

/** Turns that count how often their input is read, and how often an answer's words are. */
function createThread(length: number) {
  let looks = 0;
  let answersRead = 0;
  const turns = Array.from({ length }, (_, index): StoredTurn => {
    const input = [user(`question ${index}`)];
    const answer: Item = {
      ...assistant(""),
      get content() {
        answersRead += 1;
        return `answer ${index}`;
      },
    };
    return {
      id: `resp_${index}`,
      owner: "ann",
      session: "conv_1",
      parent: undefined,
      createdAt: new Date(0),
      model: "m",
      get input() {
        looks += 1;
        return input;
      },
      output: [answer],
      status: "completed",
      usage: undefined,
      digest: `d${index}`,
      exchange: "e",
    };
  });
  const path = toPath(turns);
  looks = answersRead = 0;
  return { path, turns, looks: () => looks, answersRead: () => answersRead };
}

test("matching the end of a long thread reads no more turns than the caller shows", async () => {
  const { path, looks } = createThread(5_000);
  const store = {
    ...createMemoryStore(),
    findTwins: async () => ({ index: 0, twins: [{ id: "resp_4999", hasChildren: false }] as const }),
    readPath: async () => path,
    countThreads: async () => 1,
  };
  const items = [4997, 4998, 4999].flatMap((each) => [user(`question ${each}`), assistant(`answer ${each}`)]);
  const session = { id: "conv_1", owner: "ann", tip: "resp_4999", resends: true };
  const chain = createChain((text) => hash("sha256", text));
  const ways = { isOneTalk: true, showAll: false };
  const match = await matchTail(store, chain, session, { items: [...items, user("next")], end: items.length }, ways);
  assert.deepEqual([match?.history, match?.isTail, match?.input], ["matched", true, [user("next")]]);
  assert.ok(looks() < 20, `${looks()} turns were read`);
});

test("the next step of a turn is found without reading the answers of a long thread before it", async () => {
  const { path, turns, answersRead } = createThread(5_000);
  const call: Item = { type: "tool-call", kind: "function", callId: "c1", name: "look", arguments: "{}" };
  const output: Item = { type: "tool-output", kind: "function", callId: "c1", output: "seen" };
  const step = extend(path, { ...turns[0]!, id: "resp_step", input: [user("look")], output: [call] });
  const store = { ...createMemoryStore(), readPath: async () => step };
  const session = { id: "conv_1", owner: "ann", tip: "resp_step", resends: false };
  const match = await matchStep(store, session, { items: [user("look"), call, output], end: 2 });
  assert.deepEqual([match?.history, match?.isTail, match?.input], ["matched", true, [output]]);
  assert.ok(answersRead() < 20, `${answersRead()} answers were read`);
});
