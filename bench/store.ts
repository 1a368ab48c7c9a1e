/** Measures the CPU that the store takes of each turn, 64 at once: `npm run bench:store [-- sqlite:FILE | postgres://…]`. */
import { hash } from "node:crypto";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { markTurn } from "../src/core/history.ts";
import type { Item } from "../src/core/item.ts";
import type { Query } from "../src/core/store.ts";
import { createKeys } from "../src/ids.ts";
import { openStore } from "../src/store/open.ts";

const [together, warmMs, measuredMs] = [64, 3_000, 6_000];
const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
const address = process.argv[2] ?? `sqlite:${join(folder, "portico.db")}`;
const store = await openStore(address, (why) => process.stderr.write(why), true);
const newKey = createKeys(store.others?.now ?? Date.now, store.others?.slot);
const digest = (text: string): string => hash("sha1", text, "base64url").slice(0, 12);
const say = (role: "user" | "assistant", content: string): Item => ({ type: "message", role, content });
let turns = 0;
const end = new AbortController();

/** One who talks: a new session every ten turns. */
async function talk(): Promise<void> {
  while (!end.signal.aborted) await talkFor(10);
}

async function talkFor(length: number): Promise<void> {
  const session = await store.sessionOf("default", `bench:${newKey()}`);
  const asked = { owner: "default", session };
  const query: Query = { ...asked, named: undefined, shown: [], prefilled: undefined, calls: [] };
  const place = { remembers: true, leads: true, learns: false, isLoose: false };
  for (let count = 0; count < length && !end.signal.aborted; count++) {
    const [input, output] = [[say("user", `Question ${count}?`)], [say("assistant", `Answer ${count}.`)]];
    const parent = (await store.find(query)).session?.tip;
    const marks = markTurn(parent?.digest ?? "", input, output, digest);
    const answer = { status: "completed", finish: "stop", items: output, notes: {}, endedAt: Date.now() } as const;
    const about = { ...asked, ...place, createdAt: Date.now(), model: "any", echo: undefined };
    await store.commit({ ...about, key: newKey(), parent, tip: parent?.turn, marks, input, answer });
    turns += 1;
  }
}

/** What all processes of a database server on this machine have used, in µs. */
function serverMicros(): number {
  let ticks = 0;
  for (const file of globSync("/proc/[0-9]*/stat")) {
    try {
      const [, name, rest = ""] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(file, "utf8")) ?? [];
      if (name === "postgres")
        ticks += rest
          .split(" ")
          .slice(11, 15)
          .reduce((sum, each) => sum + Number(each), 0);
    } catch {}
  }
  return ticks * 10_000;
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const talking = Promise.all(Array.from({ length: together }, talk));
await wait(warmMs);
const [before, cpu, server] = [turns, process.cpuUsage(), serverMicros()];
await wait(measuredMs);
const used = process.cpuUsage(cpu);
const done = turns - before;
const theirs = serverMicros() - server;
end.abort();
await talking;
await store.close();
rmSync(folder, { recursive: true });

const own = (used.user + used.system) / done;
const told = address.startsWith("postgres") ? `, ${(theirs / done).toFixed(0)} µs of the server's` : "";
process.stdout.write(
  `${own.toFixed(1)} µs of CPU a turn${told}; ${Math.round((done / measuredMs) * 1_000)} turns a second\n`,
);
