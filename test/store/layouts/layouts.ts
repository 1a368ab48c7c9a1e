/** Stores of older layouts as their release left them, in SQL, and what the release exported of them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { call, tellWell } from "../../harness/client.ts";
import { type Gateway, seenBy } from "../../harness/house.ts";
import { exportArchive } from "../aid.ts";

/** The statements that make the store of a layout, and its export. */
export function readLayout(engine: "sqlite" | "postgres", layout: number) {
  const read = (ending: string) => readFileSync(join(import.meta.dirname, `${engine}-${layout}.${ending}`), "utf8");
  return { statements: read("sql"), archive: read("jsonl") };
}

/** When the stores were made: their keys and streams are kept for a day. */
export const madeAt = new Date("2026-11-20T00:30:00Z");

/** Whatever the older release stored is there, is the same, and goes on. */
export async function checkMigrated(gateway: Gateway, archive: string): Promise<void> {
  const { address, model, logged } = gateway;
  const migrated = logged.find(({ message }) => message.includes("migrated"));
  assert.deepEqual(migrated?.fields, { from: 1 });
  assert.equal(await exportArchive(gateway), archive);

  const next = await tellWell(address, { on: "chat", say: "And now?", more: { user: "user-0" } });
  assert.equal(next.headers.get("x-portico-history"), "continued");
  assert.deepEqual(
    seenBy(model.turns.at(-1)).filter((line) => !line.startsWith("system")),
    [
      "user: Hello 0",
      "assistant: Hello 0",
      "user: And then 0?",
      "assistant: And then 0?",
      "user: Third 0",
      "assistant: Third 0",
      "user: keyed 0",
      "assistant: keyed 0",
      "user: And now?",
    ],
  );
  const asked = model.turns.length;
  const keyed = { model: "echo", messages: [{ role: "user", content: "keyed 0" }], user: "user-0" };
  const headers = { "idempotency-key": "key-0" };
  const replayed = await call(address, "POST", "/v1/chat/completions", keyed, { headers });
  assert.deepEqual([replayed.status, replayed.headers.get("x-portico-replayed")], [200, "true"]);
  assert.equal(model.turns.length, asked);
  const [, key] = /"id":"([0-9a-f]{25})"[^\n]*background 0/.exec(archive) ?? [];
  const background = await call(address, "GET", `/v1/responses/resp_${key}?stream=true&starting_after=2`);
  assert.match(background.raw, /^id: \w+-3\n.*response\.completed.*\[DONE\]/s);
}
