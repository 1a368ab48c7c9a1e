/** What parts of a turn cost by themselves: comparing its words, finding its thread, keeping it. */
import { createGateway, type Gateway } from "../src/core/gateway.ts";
import type { Item } from "../src/core/item.ts";
import { findKnown } from "../src/core/place/known.ts";
import type { Adapter } from "../src/core/ports.ts";
import type { SessionStore } from "../src/core/store.ts";
import { createChatProtocol } from "../src/protocols/chat/index.ts";
import { digest, type Message, newId, sentence, type Talk, toMessage } from "./talk.ts";

const chat = createChatProtocol({ exposeReasoning: false });
const lookUps = 2_000;
const storeTurns = 200;

/** The words of a request as the gateway has read it, which are never the very strings that are remembered. */
export function measureWords({ path }: Talk): number {
  const body = toBody(path.track.talk.map(toMessage));
  const times = Math.ceil(100_000_000 / body.length);
  const spent: number[] = [];
  for (let index = 0; index < times; index += 1) {
    const { items } = readAsk(body);
    const before = process.cpuUsage();
    const known = findKnown({ items: items as readonly Item[], end: items.length }, path);
    spent.push(microsecondsSince(before));
    if (known?.length !== items.length) throw new Error("Not all of it is known.");
  }
  return middleOf(spent);
}

export async function measureLookUp(store: SessionStore, { user, path }: Talk): Promise<number> {
  const digests = [path.tip?.digest ?? ""];
  const before = process.cpuUsage();
  for (let times = 0; times < lookUps; times += 1) {
    const session = await store.findSession("default", `user:${user}`);
    const found = await store.findByDigest(session?.id ?? "", digests);
    if (found === undefined) throw new Error("The thread was not found.");
  }
  return microsecondsSince(before) / lookUps;
}

/**
 * Everything that the store does for a turn whose history is sent along, in the midst of such a turn. Before each of them
 * another conversation is read and written, so that short and long ones find the same in the processor's caches.
 */
export async function measureStore(store: SessionStore, talks: readonly Talk[], other: Talk): Promise<number> {
  const { watched, take } = watch(store);
  const gateway = openGateway(watched);
  const disturbance = toBody(other.messages);
  const turns: number[] = [];
  for (const { user, messages } of talks) await takeTurn(gateway, user, messages); // The thread is read from the file.
  for (let turn = 0; turn < storeTurns; turn += 1) {
    const { user, messages } = talks[turn % talks.length] ?? other;
    JSON.stringify(readAsk(disturbance));
    take();
    await takeTurn(gateway, user, messages);
    turns.push(take());
  }
  return turns.reduce((sum, spent) => sum + spent, 0) / turns.length;
}

async function takeTurn(gateway: Gateway, user: string, messages: Message[]): Promise<void> {
  messages.push({ role: "user", content: `Question ${messages.length}. ${sentence}` });
  messages.push({ role: "assistant", content: await say(gateway, toBody(messages), user) });
}

/** Tells what was answered. */
async function say(gateway: Gateway, body: string, user: string): Promise<string> {
  const { signal } = new AbortController();
  const caller = { turnId: newId("resp"), owner: "default", hint: `user:${user}`, signal };
  const { about, events } = await gateway.answer(readAsk(body), caller);
  if (about.history !== "matched") throw new Error(`The history was ${about.history}.`);
  let said = "";
  for await (const batch of events) {
    for (const event of batch) {
      if (event.type !== "turn-end") continue;
      if (event.answer.error !== undefined) throw event.answer.error;
      for (const item of event.answer.items) said += toMessage(item).content;
    }
  }
  return said;
}

/**
 * A store, and the CPU time that this thread spent in it since it was last asked for. What finds something is done when it
 * returns; what is kept is written when the event loop comes to it.
 */
function watch(store: SessionStore) {
  let spent = 0;
  const timed =
    <Asked extends readonly unknown[], Found>(work: (...asked: Asked) => Promise<Found>) =>
    (...asked: Asked): Promise<Found> => {
      const stop = start();
      const found = work(...asked);
      stop();
      return found;
    };
  function start(): () => void {
    const before = process.threadCpuUsage();
    return () => {
      const { user, system } = process.threadCpuUsage(before);
      spent += user + system;
    };
  }
  const { findSession, readSession, recallPath, readPath, findByDigest, check } = store;
  const watched: SessionStore = {
    ...store,
    findSession: timed(findSession),
    readSession: timed(readSession),
    recallPath: timed(recallPath),
    readPath: timed(readPath),
    findByDigest: timed(findByDigest),
    check: timed(check),
    async commit(commit) {
      let stop: (() => void) | undefined;
      setImmediate(() => (stop = start()));
      const isKept = await timed(store.commit)(commit);
      stop?.();
      return isKept;
    },
  };
  return {
    watched,
    take(): number {
      const sum = spent;
      spent = 0;
      return sum;
    },
  };
}

function openGateway(store: SessionStore): Gateway {
  return createGateway({
    adapter,
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

/** Writes its conversation down as for a wire, and says back how long it is. */
const adapter: Adapter = {
  async *stream({ items }) {
    const { length } = JSON.stringify(items);
    yield [
      { type: "text", text: `Answer ${length}. ${sentence.repeat(2)}` },
      { type: "usage", usage: { inputTokens: 3, cachedTokens: 0, outputTokens: 2, reasoningTokens: 0 } },
      { type: "finish", reason: "stop" },
    ];
  },
};

function toBody(messages: readonly Message[]): string {
  return JSON.stringify({ model: "any", messages });
}

function readAsk(body: string) {
  return chat.parse(JSON.parse(body), "default").ask;
}

/** The mean of the middle half: now and then a turn pays for the garbage of many. */
export function middleOf(numbers: readonly number[]): number {
  const quarter = Math.floor(numbers.length / 4);
  const middle = numbers.toSorted((one, other) => one - other).slice(quarter, numbers.length - quarter);
  return middle.reduce((sum, number) => sum + number, 0) / middle.length;
}

/** User and system time of this process. */
function microsecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
