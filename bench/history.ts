/**
 * What a turn costs when much was said before it: `node bench/history.ts` prints a table in Markdown, and with the name of
 * a file draws it there.
 */
import { hash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Delta } from "../src/core/delta.ts";
import { createGateway, type Gateway } from "../src/core/gateway.ts";
import type { Item } from "../src/core/item.ts";
import type { History } from "../src/core/ports.ts";
import type { Commit, SessionStore } from "../src/core/store.ts";
import type { Ask, Turn } from "../src/core/turn.ts";
import { createIds } from "../src/ids.ts";
import { createMemoryStore } from "../src/stores/memory.ts";
import { createSqliteStore } from "../src/stores/sqlite.ts";
import { plot } from "./plot.ts";

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
  { earlier: 10_000, sessions: 1, turns: 30 },
];

/** A delta client sends only what is new, the other one everything that was said. */
const clients = ["delta", "resends"] as const;
type Client = (typeof clients)[number];

const sentence = "The quick brown fox jumps over the lazy dog, and then it thinks about what it has just done. ";
const newId = createIds(() => new Date());
const digest = (text: string) => hash("sha256", text, "base64url").slice(0, 22);

const repetitions = 2_000;

await main();

async function main(): Promise<void> {
  await measure({ earlier: 10, sessions: 500, turns: 1 }); // until the code is warm
  print(
    "| earlier turns | client | history | KB seen | CPU µs a turn | bytes alone | look-up | in its midst | kept within |",
  );
  print(
    "| ------------: | ------ | ------- | ------: | ------------: | ----------: | ------: | -----------: | ----------: |",
  );
  const rows: Row[] = [];
  for (const size of sizes) {
    for (const row of await measure(size)) {
      rows.push(row);
      print(
        toLine([
          row.earlier,
          row.client,
          row.history,
          row.kilobytes,
          row.cpu,
          row.bytes,
          row.lookUp,
          row.lookUpInMidst,
          row.keeping,
        ]),
      );
    }
  }
  const [, , file] = process.argv;
  if (file !== undefined) writeFileSync(file, toPicture(rows));
}

interface Row {
  readonly earlier: number;
  readonly client: Client;
  readonly history: string;
  readonly kilobytes: number;
  /** Of a whole turn. */
  readonly cpu: number;
  /** Of writing, reading and hashing the conversation once, which no gateway can save. */
  readonly bytes: number;
  /** Of finding the thread, by itself. */
  readonly lookUp: number;
  /** The median of the same in a turn, whose bytes have just driven everything else from the caches. */
  readonly lookUpInMidst: number;
  /** The median time until a turn is kept, likewise. */
  readonly keeping: number;
}

function toPicture(rows: readonly Row[]): string {
  const line = (name: string, client: Client, value: (row: Row) => number) => ({
    name,
    points: rows.filter((row) => row.client === client).map((row): [number, number] => [row.earlier, value(row)]),
  });
  return plot("CPU µs of a turn against the turns before it", [
    line("history sent again", "resends", ({ cpu }) => cpu),
    line("its bytes alone", "resends", ({ bytes }) => bytes),
    line("only new items", "delta", ({ cpu }) => cpu),
    line("finding the thread", "resends", ({ lookUp }) => lookUp),
  ]);
}

/** One row a client. The delta client comes first: a session that was once shown its history expects it from then on. */
async function measure({ earlier, sessions, turns }: Size): Promise<readonly Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
  const store = createSqliteStore({ file: join(folder, "sessions.db") });
  try {
    const talks: Talk[] = [];
    for (let index = 0; index < sessions; index += 1) talks.push(await tellBefore(store, `user:${index}`, earlier));
    const bytes = measureBytes(talks[0]?.items ?? []);
    const watched = watchStore(store);
    const gateway = openGateway(watched.store);
    const rows: Row[] = [];
    for (const client of clients) {
      let cpu = 0;
      for (const talk of talks)
        for (let turn = 0; turn < turns; turn += 1) cpu += await takeTurn(gateway, client, talk);
      cpu /= sessions * turns;
      const { keeping, lookUpInMidst } = watched.takeMedians();
      const lookUp = await watched.measureLookUp();
      rows.push({ earlier, client, history: talks[0]?.history ?? "", cpu, lookUp, lookUpInMidst, keeping, ...bytes });
    }
    return rows;
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

/** Remembers how the last thread was found, to find it again many times, and how long commits took. */
function watchStore(store: SessionStore) {
  let again: (() => Promise<unknown>)[] = [];
  let keeping: number[] = [];
  let finding: number[] = [];
  /** The store looks things up before it returns. */
  function time<Found>(find: () => Promise<Found>): Promise<Found> {
    const began = performance.now();
    const found = find();
    finding.push((finding.pop() ?? 0) + (performance.now() - began) * 1000);
    return found;
  }
  return {
    store: {
      ...store,
      findSession(owner: string, hint: string) {
        again = [() => store.findSession(owner, hint)];
        finding.push(0);
        return time(() => store.findSession(owner, hint));
      },
      findByDigest(sessionId: string, digests: readonly string[]) {
        again.push(() => store.findByDigest(sessionId, digests));
        return time(() => store.findByDigest(sessionId, digests));
      },
      async commit(commit: Commit) {
        const began = performance.now();
        const isKept = await store.commit(commit);
        keeping.push((performance.now() - began) * 1000);
        return isKept;
      },
    },
    takeMedians() {
      const medians = { keeping: medianOf(keeping), lookUpInMidst: medianOf(finding) };
      keeping = [];
      finding = [];
      return medians;
    },
    async measureLookUp(): Promise<number> {
      const before = process.cpuUsage();
      for (let times = 0; times < repetitions; times += 1) for (const find of again) await find();
      return microsecondsSince(before) / repetitions;
    },
  };
}

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
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
    limits: () => ({
      maxItems: Infinity,
      maxReferencedCharacters: Infinity,
      maxQueuedPerThread: 16,
      maxTurnsPerThread: Infinity,
      maxEvents: Infinity,
      maxCharacters: Infinity,
      maxRunning: 1,
      keyMs: 0,
      maxRememberedCharacters: 0,
    }),
    tokenCounter: async () => (text) => text.length,
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

/** Tells the CPU time it took. */
async function takeTurn(gateway: Gateway, client: Client, talk: Talk): Promise<number> {
  const question: Item = { type: "message", role: "user", content: `Question ${talk.items.length}. ${sentence}` };
  // What comes from a socket are never the very strings that are remembered.
  const history = client === "delta" ? [] : (JSON.parse(JSON.stringify(talk.items)) as readonly Item[]);
  const ask: Ask = {
    model: "any",
    items: [...history, question],
    itemsParam: "input",
    settings: { tools: [] },
    stream: true,
    keep: "yes",
  };
  const signal = new AbortController().signal;
  const before = process.cpuUsage();
  const reply = await gateway.answer(ask, { turnId: newId("resp"), owner: "default", hint: talk.hint, signal });
  talk.history = reply.about.history;
  for await (const events of reply.events) {
    for (const event of events) {
      if (event.type !== "turn-end") continue;
      if (event.answer.error !== undefined) throw event.answer.error;
      talk.items.push(question, ...event.answer.items);
    }
  }
  const cpu = microsecondsSince(before);
  const seen = reply.about.contextItems;
  if (seen !== talk.items.length - 1) throw new Error(`The model saw ${seen} of ${talk.items.length - 1} items.`);
  return cpu;
}

/** What no gateway can save on a history that is read from a disk or a socket, compared and sent to a model. */
function measureBytes(items: readonly Item[]): { readonly kilobytes: number; readonly bytes: number } {
  const text = JSON.stringify(items);
  const times = Math.ceil(20_000_000 / text.length);
  const costs = [() => JSON.stringify(items), () => JSON.parse(text), () => digest(text)].map((run) => {
    const before = process.cpuUsage();
    for (let index = 0; index < times; index += 1) run();
    return microsecondsSince(before) / times;
  });
  return { kilobytes: text.length / 1024, bytes: costs.reduce((sum, cost) => sum + cost, 0) };
}

/** User and system time of this process. */
function microsecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

function toLine(cells: readonly (string | number)[]): string {
  return `| ${cells.map((cell) => (typeof cell === "number" ? Math.round(cell).toLocaleString("en") : cell)).join(" | ")} |`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
