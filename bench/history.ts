/**
 * Measures what a turn costs after a long history, through the whole gateway: `npm run bench` prints a Markdown table
 * and, given a file name, draws a plot there.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import type { SessionStore } from "../src/core/store.ts";
import { createSqliteStore } from "../src/stores/sqlite.ts";
import type { Spent, Wanted } from "./gateway.ts";
import { plot } from "./plot.ts";
import { type Message, sentence, type Talk, tellBefore } from "./talk.ts";

const lengths = [10, 100, 1_000, 10_000];
/** How many turns of each are measured. That lengthens a short conversation, so there are several. */
const turns = 400;
const turnsOfOne = 20;
const lookUps = 2_000;

const token = "sk-bench-0123456789abcdef";

await main();

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
  const file = join(folder, "sessions.db");
  const model = await startModel();
  try {
    const store = createSqliteStore({ file });
    const warming = await tellBefore(store, 10, 50);
    const told: (readonly Talk[])[] = [];
    for (const length of lengths) told.push(await tellBefore(store, length, length < 1_000 ? turns / turnsOfOne : 1));
    await store.close();

    const gateway = await startGateway({ file, token, model: model.address });
    await measureTurns(gateway, warming);
    const measured: Measured[] = [];
    for (const talks of told) measured.push(await measureTurns(gateway, talks));
    await gateway.close();

    const again = createSqliteStore({ file });
    const rows: Row[] = [];
    for (const [index, spent] of measured.entries()) {
      const [talk] = told[index] ?? [];
      if (talk === undefined) continue;
      const kilobytes = JSON.stringify(talk.messages).length / 1024;
      rows.push({ ...spent, earlier: lengths[index] ?? 0, kilobytes, lookUp: await measureLookUp(again, talk) });
    }
    await again.close();
    printTable(rows);
    const [, , picture] = process.argv;
    if (picture !== undefined) writeFileSync(picture, toPicture(rows));
  } finally {
    model.close();
    rmSync(folder, { recursive: true });
  }
}

/** What turns of one length cost, in microseconds. */
interface Measured {
  /** Of a request with the whole history but no session: it is parsed and sent to the model. */
  readonly alone: Spent;
  /** Of the same request in a session. */
  readonly again: Spent;
  /** What the session adds, apart from the work on the words; and between which numbers that is in 19 of 20 runs. */
  readonly added: number;
  readonly between: readonly [from: number, to: number];
  /** CPU time of a request with only new items, in the same session. */
  readonly delta: number;
}

interface Row extends Measured {
  readonly earlier: number;
  readonly kilobytes: number;
  /** CPU time of only finding the thread in the store. */
  readonly lookUp: number;
}

/**
 * The same bytes are sent with and without a session, alternately, so that whatever slows the machine slows both. The
 * client with only new items comes first: a session that was once shown its history expects it from then on.
 */
async function measureTurns(gateway: BenchGateway, talks: readonly Talk[]): Promise<Measured> {
  const spent: Record<Client, Spent[]> = { delta: [], alone: [], again: [] };
  const say = async (talk: Talk, client: Client) => void spent[client].push(await gateway.say(talk, client));
  for (const talk of talks) {
    await gateway.say(talk, "delta"); // Reads the thread from the file.
    for (let turn = 0; turn < turns / talks.length / 4; turn += 1) await say(talk, "delta");
    await gateway.say(talk, "again"); // Hashes it.
    for (let turn = 0; turn < turns / talks.length; turn += 1) {
      const order: readonly Client[] = turn % 2 === 0 ? ["alone", "again"] : ["again", "alone"];
      for (const client of order) await say(talk, client);
    }
  }
  const { delta, alone, again } = spent;
  const added = again
    .map((one, index) => restOf(one) - restOf(alone[index] ?? one))
    .toSorted((one, other) => one - other);
  const spread = 0.98 * Math.sqrt(added.length);
  return {
    alone: middlesOf(alone),
    again: middlesOf(again),
    added: medianOf(added),
    between: [rankOf(added, -spread), rankOf(added, spread)],
    delta: medianOf(delta.map(({ cpu }) => cpu)),
  };
}

/** What is not spent on the words themselves. */
function restOf({ cpu, reading, comparing, writing }: Spent): number {
  return cpu - reading - comparing - writing;
}

function middlesOf(spent: readonly Spent[]): Spent {
  const of = (part: keyof Spent) => medianOf(spent.map((one) => one[part]));
  return { cpu: of("cpu"), reading: of("reading"), comparing: of("comparing"), writing: of("writing") };
}

/** Now and then one turn pays for the garbage of many, which distorts a mean but not a median. */
function medianOf(numbers: readonly number[]): number {
  return rankOf(
    numbers.toSorted((one, other) => one - other),
    0,
  );
}

/** The sorted number that is `behind` places after the middle. */
function rankOf(sorted: readonly number[], behind: number): number {
  return sorted[Math.round((sorted.length - 1) / 2 + behind)] ?? NaN;
}

async function measureLookUp(store: SessionStore, { user, path }: Talk): Promise<number> {
  const digests = [path.tip?.digest ?? ""];
  const before = process.cpuUsage();
  for (let times = 0; times < lookUps; times += 1) {
    const session = await store.findSession("default", `user:${user}`);
    const found = await store.findTwins(session?.id ?? "", "digest", digests);
    if (found === undefined) throw new Error("The thread was not found.");
  }
  const { user: own, system } = process.cpuUsage(before);
  return (own + system) / lookUps;
}

function printTable(rows: readonly Row[]): void {
  const columns: readonly (readonly [name: string, value: (row: Row) => number | string])[] = [
    ["earlier turns", ({ earlier }) => earlier],
    ["KB", ({ kilobytes }) => kilobytes],
    ["without a session", ({ alone }) => alone.cpu],
    ["in a session", ({ again }) => again.cpu],
    ["reading", ({ again }) => again.reading],
    ["comparing", ({ again }) => again.comparing],
    ["writing", ({ again }) => again.writing],
    ["what else a session adds", ({ added }) => added],
    ["between", ({ between }) => between.map(format).join(" and ")],
    ["only new items", ({ delta }) => delta],
    ["look-up", ({ lookUp }) => lookUp],
  ];
  print(columns.map(([name]) => name));
  print(columns.map(() => "--:"));
  for (const row of rows) print(columns.map(([, value]) => format(value(row))));
}

function format(value: number | string): string {
  return typeof value === "string" ? value : Math.round(value).toLocaleString("en");
}

function print(cells: readonly string[]): void {
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

function toPicture(rows: readonly Row[]): string {
  const line = (name: string, value: (row: Row) => number) => ({
    name,
    points: rows.map((row): [number, number] => [row.earlier, value(row)]),
  });
  return plot("µs of a turn against the turns before it", [
    line("history sent again", ({ again }) => again.cpu),
    line("without a session", ({ alone }) => alone.cpu),
    line("only new items", ({ delta }) => delta),
    line("what a session adds", ({ added }) => added),
    line("finding the thread", ({ lookUp }) => lookUp),
  ]);
}

/** Says something new each time, so that no two answers of a thread are the same. */
async function startModel() {
  let answers = 0;
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on("end", () => {
      const message = { role: "assistant", content: `Answer ${(answers += 1)}. ${sentence.repeat(2)}` };
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
      outgoing.setHeader("content-type", "application/json");
      outgoing.end(
        JSON.stringify({ id: "c", model: "m", choices: [{ index: 0, message, finish_reason: "stop" }], usage }),
      );
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

type Client = "alone" | "again" | "delta";

type BenchGateway = Awaited<ReturnType<typeof startGateway>>;

async function startGateway(wanted: Wanted) {
  const child = fork(join(import.meta.dirname, "gateway.ts"), [JSON.stringify(wanted)]);
  child.once("exit", (code) => {
    if (code !== 0) throw new Error("The gateway to be measured has ended; it has told why.");
  });
  const [address] = (await once(child, "message")) as [string];
  const dispatcher = new Agent();

  async function readSpent(): Promise<Spent> {
    child.send("spent");
    const [spent] = (await once(child, "message")) as [Spent];
    return spent;
  }

  return {
    /** Returns what the gateway spent. */
    async say(talk: Talk, client: Client): Promise<Spent> {
      const question: Message = { role: "user", content: `Question ${talk.messages.length}. ${sentence}` };
      const messages = client === "delta" ? [question] : [...talk.messages, question];
      const user = client === "alone" ? undefined : talk.user;
      const before = await readSpent();
      const { headers, body } = await request(`${address}/v1/chat/completions`, {
        dispatcher,
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "any", messages, user }),
      });
      const text = await body.text();
      const after = await readSpent();
      const seen = `${talk.messages.length + 1} items`;
      if (headers["x-portico-context"] !== seen) {
        throw new Error(`The model saw ${headers["x-portico-context"] ?? text} instead of ${seen}.`);
      }
      if (client !== "alone") talk.messages.push(question, JSON.parse(text).choices[0].message as Message);
      return {
        cpu: after.cpu - before.cpu,
        reading: after.reading - before.reading,
        comparing: after.comparing - before.comparing,
        writing: after.writing - before.writing,
      };
    },
    async close(): Promise<void> {
      await dispatcher.close();
      child.disconnect();
      await once(child, "exit");
    },
  };
}
