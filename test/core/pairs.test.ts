/** Calls and their outputs as the model sees them, however a request was found its place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Item } from "../../src/core/item.ts";
import type { Ask } from "../../src/core/turn.ts";
import { drain, open } from "./asking.ts";

const user = (content: string): Item => ({ type: "message", role: "user", content });
const call = (callId: string): Item => {
  return { type: "tool-call", kind: "function", callId, name: "look", arguments: "{}" };
};
const output = (callId: string, said = "seen"): Item => {
  return { type: "tool-output", kind: "function", callId, output: said };
};

/** What the model sees of a request that follows one in which it called `c1` and `c2`. */
async function see(by: "nothing" | "response" | "conversation", told: readonly Item[]): Promise<readonly Item[]> {
  const { adapter, answer, gateway } = open([
    [
      { type: "tool-call", index: 0, callId: "c1", name: "look" },
      { type: "tool-arguments", index: 0, text: "{}" },
      { type: "tool-call", index: 1, callId: "c2", name: "look" },
      { type: "tool-arguments", index: 1, text: "{}" },
    ],
  ]);
  const { id: conversationId } = await gateway.conversations.create("ann", {}, { turnId: "resp_0", items: [] });
  const first = await answer({ items: [user("look")], ...(by === "conversation" && { conversationId }) });
  await drain(first);
  const next: Record<typeof by, Partial<Ask>> = {
    nothing: { items: [user("look"), call("c1"), call("c2"), ...told] },
    response: { items: told, previousId: first.about.id },
    conversation: { items: told, conversationId },
  };
  await drain(await answer(next[by]));
  return adapter.turns
    .at(-1)!
    .items.map(({ type, ...item }) =>
      type === "tool-call" && "callId" in item ? call(item.callId) : ({ type, ...item } as Item),
    );
}

const before = [user("look"), call("c1"), call("c2")];
for (const by of ["nothing", "response", "conversation"] as const) {
  test(`${by}: an output that comes behind other words stands behind its call`, async () => {
    const seen = await see(by, [output("c1"), user("wait"), output("c2")]);
    assert.deepEqual(seen, [...before, output("c2"), output("c1"), user("wait")]);
  });

  test(`${by}: a call that is sent along with its output is shown once`, async () => {
    const seen = await see(by, [call("c1"), output("c1"), call("c2"), output("c2")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2")]);
  });

  test(`${by}: a call under the id of one that has its output is another call`, async () => {
    const seen = await see(by, [output("c1"), output("c2"), call("c1"), output("c1", "more")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2"), call("c1"), output("c1", "more")]);
  });

  test(`${by}: an output that is sent again is shown once, and one that says something else is not lost`, async () => {
    const seen = await see(by, [output("c1"), output("c2"), output("c1"), output("c2", "looked again")]);
    assert.deepEqual(seen, [...before, output("c1"), output("c2"), output("c2", "looked again")]);
  });
}
