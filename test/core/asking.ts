/** Requests to a gateway without a socket, for tests of turns that outlive their callers. */
import { GatewayError } from "../../src/core/errors.ts";
import type { Event } from "../../src/core/event.ts";
import type { Caller, Reply } from "../../src/core/gateway.ts";
import type { Ask } from "../../src/core/turn.ts";
import { createIds } from "../../src/ids.ts";
import { createMemoryStore } from "../stores/memory.ts";
import { makeGateway } from "../making.ts";
import { createScriptedAdapter, say, type Script } from "../scripted.ts";

const newId = createIds(() => new Date());

/** An adapter that emits one word, waits for `go`, and emits another. */
export function createSlow() {
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const script: Script = async function* (_turn, signal) {
    yield say("one");
    begun.resolve();
    await Promise.race([
      gate.promise,
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
    ]);
    yield say(" two");
  };
  return { script, go: () => gate.resolve(), begun: begun.promise };
}

/** A gateway with a manual clock, by which durations go unless told otherwise, and a request with defaults that a test can override. */
export function open(
  script: Script,
  store = createMemoryStore(),
  limits: Parameters<typeof makeGateway>[0]["limits"] = {},
  elapsedMs?: () => number,
) {
  const adapter = createScriptedAdapter(script);
  let time = 0;
  const gateway = makeGateway({ adapter, store, limits, now: () => new Date(time), elapsedMs });
  const answer = (ask: Partial<Ask> = {}, caller: Partial<Caller> = {}): Promise<Reply> =>
    gateway.answer(
      {
        model: "m",
        items: [{ type: "message", role: "user", content: "hi" }],
        itemsParam: "input",
        settings: { tools: [] },
        stream: true,
        keep: "yes",
        ...ask,
      },
      { turnId: newId("resp"), owner: "ann", hint: undefined, signal: new AbortController().signal, ...caller },
    );
  return { adapter, gateway, store, answer, setTime: (at: number) => (time = at) };
}

export async function drain(reply: Reply): Promise<Event[]> {
  const events: Event[] = [];
  for await (const batch of reply.events) events.push(...batch);
  return events;
}

/** The text of the turn's first answer, or of another choice. */
export function textOf(events: readonly Event[], choice?: number): string {
  const isMeant = (event: Event) => event.type === "item-delta" && event.choice === choice;
  return events.map((event) => (isMeant(event) && "text" in event ? event.text : "")).join("");
}

export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "none",
    (thrown) => (thrown instanceof GatewayError ? thrown.code : String(thrown)),
  );
}

/** An idempotency key. */
export const key = { key: "k1", fingerprint: "f1", param: "Idempotency-Key" };
