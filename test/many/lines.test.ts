/** A thread that several processes serve: each turn sees all before it, wherever they were answered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpoints, tellWell, type Wish } from "../harness/client.ts";
import { gate, repeatLast, say, seenBy, toLines } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { sharePair } from "./pair.ts";

const { skip } = need("postgres");
const open = sharePair();
const isLong = process.env["PORTICO_LONG"] !== undefined;

for (const on of endpoints) {
  test(`${on}: a turn on one process waits for one on the other, and sees it`, { skip }, async () => {
    const { one, other, play } = await open();
    const wish = (words: string): Wish => ({ on, say: words, more: { user: `waits ${on}` } });
    const [asked, go] = [gate(), gate()];
    play(async function* (turn) {
      const words = toLines(turn.items).at(-1) ?? "";
      if (words.endsWith("slow")) {
        asked.open();
        await go.opened;
      }
      yield say(`re: ${words.slice("user: ".length)}`);
    });
    await tellWell(one.address, wish("first"));
    const slow = tellWell(one.address, wish("slow"));
    await asked.opened;
    const turns = other.model.turns.length;
    const next = tellWell(other.address, wish("next"));
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(other.model.turns.length, turns, "it did not wait");
    go.open();
    await Promise.all([slow, next]);
    assert.deepEqual(seenBy(other.model.turns.at(-1)), [
      "user: first",
      "assistant: re: first",
      "user: slow",
      "assistant: re: slow",
      "user: next",
    ]);
  });

  test(
    `${on}: parallel turns of one thread on two processes all see those before them, and neither starves`,
    { skip },
    async (context) => {
      const { one, other, play } = await open();
      const lengths: number[] = [];
      let last: readonly string[] = [];
      play(async function* (turn) {
        lengths.push(turn.items.length);
        last = seenBy(turn);
        for (const { model } of [one, other]) model.turns.length = 0;
        yield say("ok");
      });
      const wish = (words: string): Wish => ({ on, say: words, more: { user: `parallel ${on}` } });
      const told: string[] = [];
      const until = performance.now() + (isLong ? 60_000 : 1_500);
      const callers = [one, other].flatMap((gateway) => [0, 1, 2].map((caller) => ({ gateway, caller })));
      await Promise.all(
        callers.map(async ({ gateway, caller }) => {
          for (let turn = 0; performance.now() < until; turn++) {
            const words = `${gateway === one ? "one" : "other"} ${caller} ${turn}`;
            await tellWell(gateway.address, wish(words));
            told.push(words);
          }
        }),
      );
      await tellWell(one.address, wish("last"));
      const asked = last.filter((line) => line.startsWith("user: "));
      assert.deepEqual(asked.slice(0, -1).toSorted(), told.map((words) => `user: ${words}`).toSorted());
      assert.deepEqual(
        lengths,
        Array.from({ length: told.length + 1 }, (_, index) => 2 * index + 1),
      );
      const ofOne = told.filter((words) => words.startsWith("one")).length;
      context.diagnostic(`${ofOne} turns on one process, ${told.length - ofOne} on the other`);
      assert.ok(
        ofOne >= told.length / 4 && ofOne <= (told.length * 3) / 4,
        `${ofOne} of ${told.length} on one process`,
      );
    },
  );
}

test(
  "while the first turn of a session runs, a request with other instructions does not wait for it on the other process either",
  { skip },
  async () => {
    const { one, other, play } = await open();
    const more = { user: "title" };
    const [asked, go] = [gate(), gate()];
    play(async function* (turn) {
      if (seenBy(turn)[0] === "system: Be kind.") {
        asked.open();
        await go.opened;
      }
      yield say("ok");
    });
    const first = tellWell(one.address, {
      on: "chat",
      say: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "hi" },
      ],
      more,
    });
    await asked.opened;
    await tellWell(other.address, {
      on: "chat",
      say: [
        { role: "system", content: "Find a title." },
        { role: "user", content: "hi" },
      ],
      more,
    });
    assert.deepEqual(seenBy(other.model.turns.at(-1)), ["system: Find a title.", "user: hi"]);
    go.open();
    await first;
    play(repeatLast);
    await tellWell(other.address, { on: "chat", say: "and?", more });
    assert.deepEqual(seenBy(other.model.turns.at(-1)).slice(-3), ["user: hi", "assistant: ok", "user: and?"]);
    assert.equal(seenBy(other.model.turns.at(-1))[0], "system: Be kind.");
  },
);
