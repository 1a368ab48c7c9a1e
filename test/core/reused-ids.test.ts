/** Steps of a model that uses the same ids in every answer, and of clients that show them in every form, or again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Ask } from "../../src/core/turn.ts";
import { worked } from "../worked.ts";
import { drain, open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const call = (callId: string, step: number): Item => {
  return { type: "tool-call", kind: "function", callId, name: "look", arguments: `{"step":${step}}` };
};
const output = (callId: string, said: string): Item => {
  return { type: "tool-output", kind: "function", callId, output: said };
};

type By = "conversation" | "hint" | "response";

/** A model that calls `c1` and `c2`, in every answer, when it is asked to look, also by an output. */
async function startScene(by: By, added: readonly Item[] = [], toStep = (turns: number) => `${turns}`) {
  const { adapter, answer, gateway } = open(async function* ({ items }) {
    const last = items.at(-1);
    const said = last?.type === "message" ? last.content : last?.type === "tool-output" ? last.output : "";
    if (!String(said).startsWith("look")) return yield [{ type: "text", text: `answer ${adapter.turns.length}` }];
    for (const [index, callId] of ["c1", "c2"].entries()) {
      yield [
        { type: "tool-call", index, callId, name: "look" },
        { type: "tool-arguments", index, text: `{"step":${toStep(adapter.turns.length)}}` },
      ];
    }
  });
  const { id } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: added });
  let previousId: string | undefined;
  return {
    /** What the model sees. */
    async tell(...items: readonly Item[]): Promise<readonly string[]> {
      const at: Record<By, Partial<Ask>> = { conversation: { conversationId: id }, hint: {}, response: { previousId } };
      const caller = by === "hint" ? { hint: "header:x-session-id:1", hintsAtTalk: true } : {};
      const answered = await answer({ items, ...at[by] }, caller);
      await drain(answered);
      previousId = answered.about.id;
      return adapter.turns.at(-1)!.items.map(toWords);
    },
    /** What the conversation lists. */
    async list(): Promise<readonly string[]> {
      const places = await gateway.conversations.places("ann", id);
      return places.flatMap(({ item }) => (item === undefined ? [] : toWords(item)));
    },
    /** Deletes the newest item that is listed like this. */
    async remove(words: string): Promise<void> {
      const places = await gateway.conversations.places("ann", id);
      const { turnId, side, index } = places.findLast(({ item }) => item !== undefined && toWords(item) === words)!;
      await gateway.conversations.removeItem("ann", id, { turnId, side, index }, new AbortController().signal);
    },
  };
}

function toWords(item: Item): string {
  if (item.type === "tool-call") return `${item.callId}(${item.arguments})`;
  if (item.type === "tool-output") return `${item.callId}: ${String(item.output)}`;
  return item.type === "message" ? String(item.content) : item.type;
}

/** The calls of the n-th answer, and what they are given. */
interface Step {
  readonly calls: readonly Item[];
  readonly outputs: readonly Item[];
}
const stepOf = (n: number, said = "look on"): Step => ({
  calls: [call("c1", n), call("c2", n)],
  outputs: [output("c1", `seen ${n}`), output("c2", `${said} ${n}`)],
});
const together = ({ calls, outputs }: Step): readonly Item[] => [...calls, ...outputs];
const oneByOne = ({ calls, outputs }: Step): readonly Item[] => calls.flatMap((each, index) => [each, outputs[index]!]);

/** What a client sends of a turn's steps. */
const forms: Record<string, (steps: readonly Step[]) => readonly Item[]> = {
  "with its calls": (steps) => together(steps.at(-1)!),
  "with its calls one by one": (steps) => oneByOne(steps.at(-1)!),
  "with all of its turn": (steps) => [user("look"), ...steps.flatMap(together)],
  "with all of its turn, one by one": (steps) => [user("look"), ...steps.flatMap(oneByOne)],
};
for (const by of ["conversation", "hint", "response"] as const) {
  for (const [form, send] of Object.entries(forms)) {
    test(`${by}: each step that is sent ${form} is shown once, and after its own calls`, async () => {
      const { tell, list } = await startScene(by);
      await tell(user("look"));
      const steps: Step[] = [];
      for (const n of [1, 2, 3, 4]) {
        steps.push(stepOf(n));
        const seen = ["look", ...steps.flatMap(together).map(toWords)];
        assert.deepEqual(await tell(...send(steps)), seen);
        if (by === "conversation") assert.deepEqual((await list()).slice(0, seen.length), seen);
      }
    });

    if (by === "response") continue;
    test(`${by}: a step that is sent ${form} again is answered anew, though the calls of the lost answer have the same ids`, async () => {
      const { tell } = await startScene(by);
      await tell(user("hello"));
      await tell(user("look"));
      const first = stepOf(2);
      const seen = await tell(...send([first]));
      assert.deepEqual(await tell(...send([first])), seen);
      assert.deepEqual(await tell(...send([first])), seen);
      const second = stepOf(5, "done");
      const after = [...seen, ...together(second).map(toWords)];
      assert.deepEqual(await tell(...send([first, second])), after);
      assert.deepEqual(await tell(user("thanks")), [...after, "answer 6", "thanks"]);
    });
  }
}

for (const by of ["conversation", "hint"] as const) {
  test(`${by}: parallel outputs may be sent again in another order, but not each other's`, async () => {
    const { tell } = await startScene(by);
    await tell(user("look"));
    const { outputs } = stepOf(1, "done");
    const seen = await tell(...outputs);
    const again = await tell(...outputs.toReversed());
    assert.deepEqual(again.toSorted(), seen.toSorted());
    const swapped = await tell(output("c1", "done 1"), output("c2", "seen 1"));
    assert.ok(swapped.includes("answer 3"));
  });
}

test("hint: a client that shows the calls of another answer than the newest continues that one, though the ids are the same", async () => {
  const { tell } = await startScene("hint");
  await tell(user("look"));
  await tell(user("look elsewhere"));
  const turn = [user("look"), ...together(stepOf(1))];
  assert.deepEqual(await tell(...turn), turn.map(toWords));
  await tell(...turn);
  const next = [...turn, ...together(stepOf(3))];
  assert.deepEqual(await tell(...next), next.map(toWords));
});

for (const by of ["conversation", "response"] as const) {
  test(`${by}: what was said between the steps of a turn is shown once when all of it is resent`, async () => {
    const { tell } = await startScene(by);
    await tell(user("look"));
    const turn = [user("look"), ...together(stepOf(1)), user("look again")];
    await tell(...turn);
    const shown = [...turn, ...together(stepOf(2))];
    assert.deepEqual(await tell(...shown), shown.map(toWords));
  });

  test(`${by}: outputs of earlier steps may be resent in another order`, async () => {
    const { tell } = await startScene(by);
    await tell(user("look"));
    const [first, second] = [stepOf(1), stepOf(2)];
    await tell(...first.outputs);
    const shown = [user("look"), ...first.calls, ...first.outputs.toReversed(), ...together(second)];
    const seen = [user("look"), ...together(first), ...together(second)];
    assert.deepEqual(await tell(...shown), seen.map(toWords));
  });
}

test("calls that were added to a conversation may be resent with their outputs, and are shown once", async () => {
  const { tell, list } = await startScene("conversation", [user("look"), ...stepOf(0).calls]);
  const seen = [user("look"), ...together(stepOf(0))];
  assert.deepEqual(await tell(user("look"), ...oneByOne(stepOf(0))), seen.map(toWords));
  assert.deepEqual((await list()).slice(0, seen.length), seen.map(toWords));
});

test("a call whose output was deleted is left out, though later ones have its id", async () => {
  const { tell, remove } = await startScene("conversation");
  await tell(user("look"));
  await tell(...stepOf(1).outputs);
  await tell(...stepOf(2, "done").outputs);
  await remove("c1: seen 1");
  const seen = ["look", `c2({"step":1})`, "c2: look on 1", ...together(stepOf(2, "done")).map(toWords)];
  assert.deepEqual(await tell(user("thanks")), [...seen, "answer 3", "thanks"]);
});

test("a long call of a lost answer is told from many others with its id in little time", async () => {
  const { tell } = await startScene("conversation", [], () => JSON.stringify("x".repeat(300_000)));
  const steps = Array.from({ length: 1000 }, (_, index) => together(stepOf(index))).flat();
  const seen = await tell(user("look"), ...steps);
  const started = worked();
  assert.deepEqual(await tell(user("look"), ...steps), seen);
  assert.ok(worked() - started < 1000);
});
