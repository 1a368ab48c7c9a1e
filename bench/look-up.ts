/** Measures how long the store takes to place a request in a session of 10 turns and in one of 10,000: `npm run bench`. */
import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markTurn, readHistory } from "../src/core/history.ts";
import type { Item } from "../src/core/item.ts";
import type { Query } from "../src/core/store.ts";
import { createKeys } from "../src/ids.ts";
import { openSqlite } from "../src/store/sqlite.ts";

const rounds = 2_000;
const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
const store = await openSqlite(join(folder, "portico.db"), (why) => process.stderr.write(why), true);
const newKey = createKeys(Date.now);
const digest = (text: string): string => hash("sha1", text, "base64url").slice(0, 12);
const say = (role: "user" | "assistant", content: string): Item => ({ type: "message", role, content });

/** Plays a session, and returns what is asked about a request in it that has only what is new, and one that shows all. */
async function play(turns: number): Promise<readonly Query[]> {
  const asked = { owner: "default", session: await store.sessionOf("default", `user:${turns}`) };
  const place = { remembers: true, leads: true, learns: false, isLoose: false };
  const about = { ...asked, ...place, createdAt: 0, model: "any", instructions: undefined, echo: undefined };
  const delta: Query = { ...asked, named: undefined, shown: [], prefilled: undefined, calls: [] };
  const items: Item[] = [];
  for (let count = 1; count <= turns; count++) {
    const [input, output] = [[say("user", `Question ${count}?`)], [say("assistant", `Answer ${count}.`)]];
    const parent = (await store.find(delta)).session?.tip;
    const marks = markTurn(parent?.digest ?? "", input, output, digest);
    const answer = { status: "completed", finish: "stop", items: output, notes: {}, endedAt: 0 } as const;
    await store.commit({ ...about, key: newKey(), parent, tip: parent?.turn, marks, input, answer });
    items.push(...input, ...output);
  }
  const { shown } = readHistory([...items, say("user", "And now?")], digest).talk();
  const { match } = await store.find({ ...delta, shown });
  if (match?.node.depth !== turns) throw new Error("What was played is not found.");
  return [delta, { ...delta, shown }];
}

const queries = [...(await play(10)), ...(await play(10_000))];
const times = queries.map((): number[] => []);
// In turns, so that whatever else the machine does hits all alike.
for (let round = 0; round < rounds * queries.length; round++) {
  const [query, own] = [queries[round % queries.length], times[round % queries.length]];
  const since = performance.now();
  if (query !== undefined) await store.find(query);
  own?.push((performance.now() - since) * 1_000);
}
await store.close();
rmSync(folder, { recursive: true });

const medians = times.map((own) => own.toSorted((one, other) => one - other)[rounds / 2]);
for (const [index, name] of ["only what is new", "a shown history"].entries()) {
  const [few = 0, many = 0] = [medians[index], medians[index + 2]];
  const ratio = (many / few).toFixed(2);
  process.stdout.write(
    `${name}: ${few.toFixed(1)} µs after 10 turns, ${many.toFixed(1)} after 10,000, ratio ${ratio}\n`,
  );
}
