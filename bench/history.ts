/** What a turn costs when much was said before it: `node bench/history.ts` prints a table in Markdown. */
import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Delta } from "../src/core/delta.ts";
import { createGateway, type Gateway } from "../src/core/gateway.ts";
import type { Item } from "../src/core/item.ts";
import type { Commit, History, SessionStore } from "../src/core/ports.ts";
import type { Ask, Turn } from "../src/core/turn.ts";
import { createIds } from "../src/ids.ts";
import { createMemoryStore } from "../src/stores/memory.ts";
import { createSqliteStore } from "../src/stores/sqlite.ts";

/** So many turns were said before, in so many sessions, each of which then takes a few more from each client. */
interface Size {
  readonly earlier: number;
  readonly sessions: number;
  readonly turns: number;
}

const sizes: readonly Size[] = [
  { earlier: 10, sessions: 200, turns: 1 },
  { earlier: 100, sessions: 50, turns: 3 },
  { earlier: 1_000, sessions: 3, turns: 20 },
  { earlier: 10_000, sessions: 1, turns: 10 },
];

/** A delta client sends only what is new, the other one everything that was said. */
const clients = ["delta", "resends"] as const;
type Client = (typeof clients)[number];

const sentence = "The quick brown fox jumps over the lazy dog, and then it thinks about what it has just done. ";
const newId = createIds(() => new Date());
const digest = (text: string) => hash("sha256", text, "base64url").slice(0, 22);

await main();

async function main(): Promise<void> {
  await measure({ earlier: 10, sessions: 500, turns: 1 }); // until the code is warm
  print("| earlier turns | client | history | KB seen | CPU µs a turn | bytes alone | stringify | parse | hash |");
  print("| ------------: | ------ | ------- | ------: | ------------: | ----------: | --------: | ----: | ---: |");
  for (const size of sizes) for (const row of await measure(size)) print(row);
}

/** One row a client. The delta client comes first: a session that was once shown its history expects it from then on. */
async function measure({ earlier, sessions, turns }: Size): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
  const store = createSqliteStore({ file: join(folder, "sessions.db") });
  try {
    const talks: Talk[] = [];
    for (let index = 0; index < sessions; index += 1) talks.push(await tellBefore(store, `user:${index}`, earlier));
    const bytes = measureBytes(talks[0]?.items ?? []);
    const gateway = openGateway(store);
    const rows: string[] = [];
    for (const client of clients) {
      const before = process.cpuUsage();
      for (const talk of talks) for (let turn = 0; turn < turns; turn += 1) await takeTurn(gateway, client, talk);
      const cpu = microsecondsSince(before) / (sessions * turns);
      rows.push(toRow([earlier, client, talks[0]?.history ?? "", bytes.kilobytes, cpu, ...bytes.costs]));
    }
    return rows;
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

interface Talk {
  readonly hint: string;
  /** Everything that was said, as its client remembers it. */
  readonly items: Item[];
  history: History | undefined;
}

/** A thread told to a gateway with a quick store; what that one was given to keep, the store gets in one go. */
async function tellBefore(store: SessionStore, hint: string, turns: number): Promise<Talk> {
  const commits: Commit[] = [];
  const memory = createMemoryStore();
  const gateway = openGateway({
    ...memory,
    commit(commit) {
      commits.push(commit);
      return memory.commit(commit);
    },
  });
  const talk: Talk = { hint, items: [], history: undefined };
  for (let turn = 0; turn < turns; turn += 1) await takeTurn(gateway, "delta", talk);
  const kept = await Promise.all(commits.map((commit) => store.commit(commit)));
  if (!kept.every(Boolean)) throw new Error("The store refused a turn of the history.");
  return talk;
}

function openGateway(store: SessionStore): Gateway {
  return createGateway({
    adapter: { stream: answer },
    store,
    resolveModel: (asked) => asked,
    limits: { maxItems: Infinity, maxQueuedPerThread: 16 },
    now: () => new Date(),
    newSessionId: () => newId("conv"),
    digest,
  });
}

/** Says back the number of items it sees, so that no two answers of a thread are the same. */
async function* answer({ items }: Turn): AsyncGenerator<readonly Delta[], void, void> {
  yield [
    { type: "text", text: `Answer ${items.length}. ${sentence.repeat(2)}` },
    { type: "usage", usage: { inputTokens: 3, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 } },
    { type: "finish", reason: "stop" },
  ];
}

async function takeTurn(gateway: Gateway, client: Client, talk: Talk): Promise<void> {
  const question: Item = { type: "message", role: "user", content: `Question ${talk.items.length}. ${sentence}` };
  const ask: Ask = {
    model: "any",
    items: client === "delta" ? [question] : [...talk.items, question],
    itemsParam: "input",
    settings: { tools: [] },
    stream: true,
    keep: "yes",
  };
  const signal = new AbortController().signal;
  const reply = await gateway.answer(ask, { turnId: newId("resp"), owner: "default", hint: talk.hint, signal });
  talk.history = reply.about.history;
  for await (const events of reply.events) {
    for (const event of events) {
      if (event.type !== "turn-end") continue;
      if (event.answer.error !== undefined) throw event.answer.error;
      talk.items.push(question, ...event.answer.items);
    }
  }
  const seen = reply.about.contextItems;
  if (seen !== talk.items.length - 1) throw new Error(`The model saw ${seen} of ${talk.items.length - 1} items.`);
}

/** What no gateway can save on a history that is read from a disk or a socket, compared and sent to a model. */
function measureBytes(items: readonly Item[]): { readonly kilobytes: number; readonly costs: readonly number[] } {
  const text = JSON.stringify(items);
  const times = Math.ceil(20_000_000 / text.length);
  const costs = [() => JSON.stringify(items), () => JSON.parse(text), () => digest(text)].map((run) => {
    const before = process.cpuUsage();
    for (let index = 0; index < times; index += 1) run();
    return microsecondsSince(before) / times;
  });
  return { kilobytes: text.length / 1024, costs: [costs.reduce((sum, cost) => sum + cost, 0), ...costs] };
}

/** User and system time of this process. */
function microsecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function toRow(cells: readonly (string | number)[]): string {
  return `| ${cells.map((cell) => (typeof cell === "number" ? Math.round(cell).toLocaleString("en") : cell)).join(" | ")} |`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
