/** Steps of a model that uses the same ids in every answer, and of clients that show them in every form, or again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Ask } from "../../src/core/turn.ts";
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
async function startScene(by: By, added: readonly Item[] = []) {
  const { adapter, answer, gateway } = open(async function* ({ items }) {
    const last = items.at(-1);
    const said = last?.type === "message" ? last.content : last?.type === "tool-output" ? last.output : "";
    if (!String(said).startsWith("look")) return yield [{ type: "text", text: `answer ${adapter.turns.length}` }];
    for (const [index, callId] of ["c1", "c2"].entries()) {
      yield [
        { type: "tool-call", index, callId, name: "look" },
        { type: "tool-arguments", index, text: `{"step":${adapter.turns.length}}` },
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

test("a call whose output was deleted is left out, though later ones have its id", async () => {
  const { tell, remove } = await startScene("conversation");
  await tell(user("look"));
  await tell(...stepOf(1).outputs);
  await tell(...stepOf(2, "done").outputs);
  await remove("c1: seen 1");
  const seen = ["look", `c2({"step":1})`, "c2: look on 1", ...together(stepOf(2, "done")).map(toWords)];
  assert.deepEqual(await tell(user("thanks")), [...seen, "answer 3", "thanks"]);
});
