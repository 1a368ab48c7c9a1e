/** A thread that several processes serve: each turn sees all before it, wherever they were answered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { endpoints, messagesOf, replyWith, startServer, tellWell, type Wish } from "../harness/client.ts";
import { gate, makeFolder, repeatLast, say, seenBy, toLines } from "../harness/house.ts";
import { need } from "../harness/needs.ts";
import { newDatabase } from "../harness/postgres.ts";
import { runProgram, toConfig, writeConfig } from "../harness/program.ts";
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
      const server = await startServer(context);
      const lengths: number[] = [];
      let last: readonly string[] = [];
      server.script = replyWith((received) => {
        const shown = messagesOf(received);
        lengths.push(shown.length);
        last = shown.flatMap(({ role, content }) => (role === "user" ? [String(content)] : []));
        (server.received as unknown[]).length = 0;
        return { content: "ok" };
      });
      const gateway = { adapters: server.adapters, sessions: { store: await newDatabase(context) } };
      const addresses = await Promise.all(
        ["one", "other"].map(() => {
          const folder = makeFolder(context);
          writeConfig(folder, toConfig({ gateway: { ...gateway, log: { level: "error" } } }));
          return runProgram(context, folder, "start").address();
        }),
      );
      const wish = (words: string): Wish => ({ on, say: words, more: { user: "parallel" } });
      const told: string[] = [];
      const until = performance.now() + (isLong ? 60_000 : 1_500);
      const callers = addresses.flatMap((address, process) =>
        [0, 1, 2].map((caller) => ({ address, process, caller })),
      );
      await Promise.all(
        callers.map(async ({ address, process, caller }) => {
          for (let turn = 0; performance.now() < until; turn++) {
            const words = `${process} ${caller} ${turn}`;
            await tellWell(address, wish(words));
            told.push(words);
          }
        }),
      );
      await tellWell(addresses[0] ?? "", wish("last"));
      assert.deepEqual(last.slice(0, -1).toSorted(), told.toSorted());
      assert.deepEqual(
        lengths,
        Array.from({ length: told.length + 1 }, (_, index) => 2 * index + 1),
      );
      const ofOne = told.filter((words) => words.startsWith("0")).length;
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
