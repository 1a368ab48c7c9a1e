/** A gateway that is killed while requests with keys run, is restarted, and gets the same requests again. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createSqliteStore } from "../../src/stores/sqlite.ts";
import { makeFolder } from "../gateway.ts";
import { runProgram, toConfig, writeConfig } from "./program.ts";
import { endpoints, paths, toRequest, type Wish } from "./talk.ts";

const clients = 16;

test("a request that is repeated with its key after a crash is in its session once, as it was sent", async (context) => {
  const folder = makeFolder(context);
  const config = toConfig({
    adapters: { echo: { type: "echo", delay_ms: 5 } },
    sessions: { store: "sqlite:sessions.db" },
    log: { level: "silent" },
  });
  const start = () => runProgram(context, folder, "start", "--config", writeConfig(folder, config));

  const first = start();
  const address = await first.address();
  const ended = Promise.withResolvers<void>();
  const streams = Array.from({ length: clients }, (_, client) =>
    ask(address, client).then((text) => {
      if (text.endsWith("[DONE]\n\n")) ended.resolve();
      return text;
    }),
  );
  // Half of them are longer: some have been sent, some have just been stored, some still run.
  await ended.promise;
  await first.stop("SIGKILL");
  const before = await Promise.all(streams);

  const second = start();
  const again = await second.address();
  const after = await Promise.all(Array.from({ length: clients }, (_, client) => ask(again, client)));
  for (const [client, text] of after.entries()) {
    assert.ok(text.endsWith("[DONE]\n\n"), text);
    const told = before[client] ?? "";
    if (told.endsWith("[DONE]\n\n")) assert.equal(text, told);
  }
  assert.equal((await second.stop()).code, 0);

  const store = createSqliteStore({ file: join(folder, "sessions.db") });
  context.after(() => store.close());
  for (let client = 0; client < clients; client++) {
    const session = await store.findSession("default", `user:user-${client}`);
    assert.equal((await store.readPath(session?.tip ?? "")).length, 1);
  }
});

/** All that arrives of the stream, even of one that is cut off. */
async function ask(address: string, client: number): Promise<string> {
  const on = endpoints[client % 2] ?? "chat";
  const wish: Wish = { on, stream: true, say: "word ".repeat(10 + client), more: { user: `user-${client}` } };
  const { headers, ...rest } = toRequest(wish);
  let text = "";
  try {
    const init = { ...rest, headers: { ...headers, "idempotency-key": `key-${client}` } };
    const { body } = await fetch(address + paths[on], init);
    const decoder = new TextDecoder();
    for await (const piece of body ?? []) text += decoder.decode(piece, { stream: true });
  } catch (thrown) {
    assert.ok(thrown instanceof TypeError, "the connection was cut");
  }
  return text;
}
