/** One constant `user` for everybody: no conversation ever sees a word of another. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpoints, tellWell } from "../harness/client.ts";
import { type Options, openGateway, repeatLast, seenBy, shareGateway } from "../harness/house.ts";
import { toWire } from "./script.ts";

/** Conversations that begin alike and go on in turn, each in words that only it has, each shown whole. */
async function converse(options: Options, count: number, isOwn: (line: string, who: number) => boolean): Promise<void> {
  const ends: (() => unknown)[] = [];
  const { address, model } = await openGateway({ after: (end) => ends.push(end) }, options);
  model.script = repeatLast;
  const histories = Array.from({ length: count }, (): string[] => []);
  for (let turn = 0; turn < 4; turn++) {
    for (const [who, history] of histories.entries()) {
      const words = turn === 0 && who % 2 === 0 ? "user: hi" : `user: w${who} in ${turn}`;
      const on = endpoints[(who + turn) % 2] ?? "chat";
      const lines = [...history, words];
      const heard = await tellWell(address, { on, say: toWire(on, lines), more: { user: "app" } });
      const seen = seenBy(model.turns.at(-1));
      if (isOwn(words, who)) assert.deepEqual(seen, lines, `conversation ${who}, turn ${turn}`);
      history.push(words, `assistant: ${heard.text}`);
    }
  }
  for (const end of ends) await end();
}

test("where clients are said to show their history, no conversation sees another, from the first turn on", async () => {
  await converse({ gateway: { sessions: { history: "resent" } } }, 50, () => true);
});

test("a token may be said to show its history", async () => {
  const tokens = [{ name: "app", token: "sk-gateway-app-0123456789", history: "resent" }];
  const ends: (() => unknown)[] = [];
  const { address, model } = await openGateway({ after: (end) => ends.push(end) }, { http: { tokens } });
  for (const say of ["one", "two"]) {
    const heard = await tellWell(address, { on: "chat", say, token: tokens[0]!.token, more: { user: "app" } });
    assert.equal(heard.headers.get("x-portico-history"), "new");
    assert.deepEqual(seenBy(model.turns.at(-1)), [`user: ${say}`]);
  }
  for (const end of ends) await end();
});

test("by default no conversation sees another once any of them has shown its history", async () => {
  let hasShown = false;
  await converse({}, 50, (line) => {
    const isJudged = hasShown;
    // The second round of the first conversation is the first that is shown.
    hasShown ||= line.endsWith(" in 1");
    return isJudged;
  });
});

const open = shareGateway();

for (const on of endpoints) {
  test(`${on}: a shown history never brings in what its client did not show`, async () => {
    const { address, model } = await open();
    model.script = repeatLast;
    const more = { user: `secrets on ${on}` };
    const tellLines = (lines: readonly string[]) => tellWell(address, { on, say: toWire(on, lines), more });
    for (const words of ["user: my secret", "user: hi", "user: thanks"]) await tellLines([words]);
    for (const shown of [
      ["user: hi", "assistant: re: hi", "user: and?"],
      ["user: thanks", "assistant: re: thanks", "user: and?"],
      ["assistant: re: thanks", "user: and?"],
      ["user: hi", "assistant: re: hi", "user: thanks", "assistant: re: thanks", "user: and?"],
      ["user: other", "assistant: re: my secret", "user: and?"],
    ]) {
      await tellLines(shown);
      assert.deepEqual(seenBy(model.turns.at(-1)), shown);
    }
  });
}
