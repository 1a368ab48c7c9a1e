/** Parallel requests on one thread, for PORTICO_SECONDS seconds: in order, without a gap, without a duplicate. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { APIError } from "openai";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder, startGateway, token } from "../gateway.ts";
import { readTurns } from "../stores/making.ts";

const seconds = Number(process.env["PORTICO_SECONDS"] || 2);
/** More than may wait for a thread, so that its limit is always reached. */
const clients = 24;

test("parallel requests on one thread are answered in order, none missing, none twice, and the queue is limited", async (context) => {
  const folder = makeFolder(context);
  const file = `${folder}/turns.db`;
  const gateway = await startGateway(context, {
    adapters: { echo: { type: "echo" } },
    sessions: { store: `sqlite:${file}` },
  });
  const client = new OpenAI({ baseURL: `${gateway.address}/v1`, apiKey: token, maxRetries: 0 });
  const answered: { readonly word: string; readonly seen: number }[] = [];
  let refused = 0;
  let count = 0;
  const end = performance.now() + seconds * 1000;

  async function talk(): Promise<void> {
    while (performance.now() < end) {
      const word = `word${count++}`;
      try {
        const { data, response } = await client.chat.completions
          .create({ model: "m", messages: [{ role: "user", content: word }], user: "one" })
          .withResponse();
        assert.equal(data.choices[0]?.message.content, word);
        answered.push({ word, seen: Number.parseInt(response.headers.get("x-portico-context") ?? "", 10) });
      } catch (thrown) {
        if (!(thrown instanceof APIError)) throw thrown;
        assert.equal(thrown.status, 429);
        assert.equal(thrown.code, "session_busy");
        assert.equal(thrown.headers?.get("retry-after"), "1");
        refused++;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  await Promise.all(Array.from({ length: clients }, talk));
  await gateway.close();
  const store = createSqliteStore({ file });
  context.after(() => store.close());
  const [summary] = await store.listSessions({ limit: 1 });
  const session = await store.readSession(summary?.id ?? "");
  const path = await readTurns(store, session?.tip ?? "");
  const stored = path.map(({ input }) => (input[0]?.type === "message" ? input[0].content : ""));
  answered.sort((one, other) => one.seen - other.seen);
  assert.deepEqual(
    stored,
    answered.map(({ word }) => word),
  );
  // Each saw everything before it: two items per turn, and its own.
  for (const [index, { seen }] of answered.entries()) assert.equal(seen, 2 * index + 1);
  assert.ok(answered.length > clients, `${answered.length} answers`);
  assert.ok(refused > 0);
  context.diagnostic(`${answered.length} answers in order, ${refused} refused with 429, in ${seconds} s`);
});
