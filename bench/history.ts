/**
 * What a turn costs when much was said before it, through the whole gateway: `npm run bench` prints a table in Markdown, and
 * with the name of a file draws it there.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import { createSqliteStore } from "../src/stores/sqlite.ts";
import type { Wanted } from "./gateway.ts";
import { measureLookUp, measureStore, measureWords, middleOf } from "./parts.ts";
import { plot } from "./plot.ts";
import { type Message, sentence, type Size, type Talk, tellBefore } from "./talk.ts";

const warming: Size = { earlier: 10, sessions: 500, turns: 2 };
const sizes: readonly Size[] = [
  { earlier: 10, sessions: 100, turns: 1 },
  { earlier: 100, sessions: 20, turns: 5 },
  { earlier: 1_000, sessions: 4, turns: 25 },
  { earlier: 10_000, sessions: 1, turns: 200 },
];
/** So long is what drives everything else from the processor's caches before a turn is measured. */
const disturbing: Size = { earlier: 10_000, sessions: 1, turns: 0 };

const token = "sk-bench-0123456789abcdef";

await main();

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
  const file = join(folder, "sessions.db");
  const model = await startModel();
  try {
    const before = createSqliteStore({ file });
    const all: (readonly Talk[])[] = [];
    for (const size of [warming, disturbing, ...sizes]) all.push(await tellBefore(before, size));
    await before.close();
    const [first = [], [other] = [], ...talks] = all;
    const gateway = await startGateway({ file, token, model: model.address });
    await measureTurns(gateway, warming, first, async () => {});
    if (other === undefined) throw new Error("There is nothing to disturb with.");
    const disturb = async () => void (await gateway.say(other, "alone"));
    const spent: Spent[] = [];
    for (const [index, size] of sizes.entries()) {
      spent.push(await measureTurns(gateway, size, talks[index] ?? [], disturb));
    }
    await gateway.close();

    const rows: Row[] = [];
    const store = createSqliteStore({ file });
    for (const [index, { earlier }] of sizes.entries()) {
      const [turns, told = []] = [spent[index], talks[index]];
      const [talk] = told;
      if (turns === undefined || talk === undefined) continue;
      const kilobytes = JSON.stringify(talk.messages).length / 1024;
      const lookUp = await measureLookUp(store, talk);
      const inStore = await measureStore(store, told, other);
      rows.push({ ...turns, earlier, kilobytes, words: measureWords(talk), lookUp, inStore });
    }
    await store.close();
    printTable(rows);
    const [, , picture] = process.argv;
    if (picture !== undefined) writeFileSync(picture, toPicture(rows));
  } finally {
    model.close();
    rmSync(folder, { recursive: true });
  }
}

/** What some turns cost, in microseconds of CPU time. */
interface Spent {
  /** Of a request with the whole history that has no session: its bytes are read, understood and sent to the model. */
  readonly alone: number;
  /** Of the same request in a session. */
  readonly again: number;
  /** What the session adds to it, turn by turn. */
  readonly added: number;
  /** Of a request with only what is new, in the same session. */
  readonly delta: number;
}

interface Row extends Spent {
  readonly earlier: number;
  readonly kilobytes: number;
  /** Of comparing all words of the history with those that are remembered, by itself. */
  readonly words: number;
  /** Of finding the thread in the store, by itself. */
  readonly lookUp: number;
  /** Of everything that the store does for such a turn, in its midst: finding the thread, and keeping the turn. */
  readonly inStore: number;
}

/**
 * Before each turn that counts comes a disturbance, so that short and long ones find the same: alone in a loop a short one has
 * the caches of the processor to itself. The client with only new items is the first: a session that was once shown its
 * history expects it from then on.
 */
async function measureTurns(
  gateway: BenchGateway,
  { turns }: Size,
  talks: readonly Talk[],
  disturb: () => Promise<void>,
): Promise<Spent> {
  const spent: Record<Client, number[]> = { delta: [], alone: [], again: [] };
  async function say(talk: Talk, client: Client): Promise<void> {
    await disturb();
    spent[client].push(await gateway.say(talk, client));
  }
  for (const talk of talks) {
    await gateway.say(talk, "delta"); // The thread is read from the file.
    for (let turn = 0; turn < turns; turn += 1) await say(talk, "delta");
    await gateway.say(talk, "again"); // And hashed.
    for (let turn = 0; turn < turns; turn += 1) {
      await say(talk, "alone");
      await say(talk, "again");
    }
  }
  const { delta, alone, again } = spent;
  const added = again.map((cpu, index) => cpu - (alone[index] ?? 0));
  return { delta: middleOf(delta), alone: middleOf(alone), again: middleOf(again), added: middleOf(added) };
}

function printTable(rows: readonly Row[]): void {
  const columns: readonly (readonly [name: string, value: (row: Row) => number])[] = [
    ["earlier turns", ({ earlier }) => earlier],
    ["KB", ({ kilobytes }) => kilobytes],
    ["without a session", ({ alone }) => alone],
    ["in a session", ({ again }) => again],
    ["what it adds", ({ added }) => added],
    ["words compared", ({ words }) => words],
    ["only new items", ({ delta }) => delta],
    ["found and kept", ({ inStore }) => inStore],
    ["look-up", ({ lookUp }) => lookUp],
  ];
  print(columns.map(([name]) => name));
  print(columns.map(() => "--:"));
  for (const row of rows) print(columns.map(([, value]) => Math.round(value(row)).toLocaleString("en")));
}

function print(cells: readonly string[]): void {
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

function toPicture(rows: readonly Row[]): string {
  const line = (name: string, value: (row: Row) => number) => ({
    name,
    points: rows.map((row): [number, number] => [row.earlier, value(row)]),
  });
  return plot("CPU µs of a turn against the turns before it", [
    line("history sent again", ({ again }) => again),
    line("without a session", ({ alone }) => alone),
    line("only new items", ({ delta }) => delta),
    line("found and kept", ({ inStore }) => inStore),
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
  const [address] = (await once(child, "message")) as [string];
  const dispatcher = new Agent();

  async function readCpu(): Promise<number> {
    child.send("cpu");
    const [spent] = (await once(child, "message")) as [number];
    return spent;
  }

  return {
    /** Tells the CPU time it took the gateway. */
    async say(talk: Talk, client: Client): Promise<number> {
      const question: Message = { role: "user", content: `Question ${talk.messages.length}. ${sentence}` };
      const messages = client === "delta" ? [question] : [...talk.messages, question];
      const user = client === "alone" ? undefined : talk.user;
      const before = await readCpu();
      const { headers, body } = await request(`${address}/v1/chat/completions`, {
        dispatcher,
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "any", messages, user }),
      });
      const text = await body.text();
      const spent = (await readCpu()) - before;
      const seen = `${talk.messages.length + 1} items`;
      if (headers["x-portico-context"] !== seen) {
        throw new Error(`The model saw ${headers["x-portico-context"] ?? text} instead of ${seen}.`);
      }
      if (client !== "alone") talk.messages.push(question, JSON.parse(text).choices[0].message as Message);
      return spent;
    },
    async close(): Promise<void> {
      await dispatcher.close();
      child.disconnect();
      await once(child, "exit");
    },
  };
}
