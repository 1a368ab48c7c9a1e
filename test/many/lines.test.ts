/** A thread that several processes serve: each turn sees all before it, wherever they were answered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpoints, tellWell, type Wish } from "../harness/client.ts";
import { gate, repeatLast, say, seenBy, toLines } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { sharePair } from "./pair.ts";

const { skip } = need("postgres");
const open = sharePair();

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
    async () => {
      const { one, other, play } = await open();
      play(repeatLast);
      const wish = (words: string): Wish => ({ on, say: words, more: { user: `parallel ${on}` } });
      const [turnsOne, turnsOther] = [one.model.turns.length, other.model.turns.length];
      const callers = [one, other].flatMap((gateway) => [0, 1, 2].map((caller) => ({ gateway, caller })));
      const told: string[] = [];
      await Promise.all(
        callers.map(async ({ gateway, caller }) => {
          for (let turn = 0; turn < 8; turn++) {
            const words = `${gateway === one ? "one" : "other"} ${caller} ${turn}`;
            await tellWell(gateway.address, wish(words));
            told.push(words);
          }
        }),
      );
      await tellWell(one.address, wish("last"));
      const asked = seenBy(one.model.turns.at(-1)).filter((line) => line.startsWith("user: "));
      assert.equal(asked.length, told.length + 1);
      assert.deepEqual(asked.slice(0, -1).toSorted(), told.map((words) => `user: ${words}`).toSorted());
      const seen = [...one.model.turns.slice(turnsOne), ...other.model.turns.slice(turnsOther)].map(
        (turn) => turn.items.length,
      );
      assert.deepEqual(
        seen.toSorted((a, b) => a - b),
        Array.from({ length: told.length + 1 }, (_, index) => 2 * index + 1),
      );
      // Half of them had been answered when neither had made much more than its half.
      const half = told.slice(0, told.length / 2).filter((words) => words.startsWith("one")).length;
      assert.ok(
        half >= told.length / 8 && half <= (told.length * 3) / 8,
        `${half} of the first ${told.length / 2} were one process's`,
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
