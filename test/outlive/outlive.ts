/** Turns that a test holds back, and streams as the messages that a client counts. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type Answered, call, paths, readAnswer, toRequest, type Wish, withoutComments } from "../harness/client.ts";
import { gate, say, type Script } from "../harness/house.ts";

/** A script that is a generator. */
export type Telling = Exclude<Script, readonly unknown[]>;

/** A model that says "one", or another word, and " two" only when it is let go. */
export interface Held {
  readonly script: Telling;
  /** Resolves when its first word has been taken. */
  readonly begun: Promise<void>;
  /** Resolves when the gateway has aborted it. */
  readonly aborted: Promise<void>;
  go(): void;
}

export function hold(first = "one"): Held {
  const [begun, left, aborted] = [gate(), gate(), gate()];
  const script: Telling = async function* (_turn, signal) {
    signal.addEventListener("abort", aborted.open);
    yield say(first);
    begun.open();
    await Promise.race([left.opened, once(signal, "abort")]);
    signal.throwIfAborted();
    yield say(" two");
  };
  return { script, begun: begun.opened, aborted: aborted.opened, go: left.open };
}

/** A model that breaks after some words. */
export function failsAfter(...words: string[]): Telling {
  return async function* () {
    for (const word of words) yield say(word);
    throw new Error("It broke.");
  };
}

export const fails = failsAfter("half");

/** A request of either endpoint, its answer unread. */
export function ask(address: string, wish: Wish): Promise<Answered> {
  return call(address, "POST", paths[wish.on], toRequest(wish).body, wish);
}

export async function askWell(address: string, wish: Wish): Promise<Answered> {
  const answered = await ask(address, wish);
  assert.equal(answered.status, 200, answered.raw);
  return answered;
}

export function keyed(wish: Wish, key: string, more: Readonly<Record<string, string>> = {}): Wish {
  return { ...wish, headers: { ...wish.headers, "idempotency-key": key, ...more } };
}

/** The text of an answer, whose stream is checked against the grammar of its wire. */
export function textIn(wish: Wish, { status, headers, raw }: Answered): string {
  const heard = readAnswer(wish, status, headers, withoutIds(raw));
  assert.equal(heard.error, undefined, raw);
  return heard.text;
}

/** The id of an answer, whole or streamed. */
export function idIn({ raw }: Pick<Answered, "raw">): string {
  return /"id":"((?:resp|chatcmpl)[^"]+)"/.exec(raw)?.[1] ?? assert.fail(raw);
}

/** A stream's messages, each as its lines, without heartbeats. */
export function messagesOf(raw: string): string[] {
  return withoutComments(raw)
    .split("\n\n")
    .filter((message) => message !== "");
}

/** The ids of a stream's messages: what a client sends as `Last-Event-ID`. */
export function idsOf(raw: string): string[] {
  return messagesOf(raw).map((message) => /^id: (.+)$/m.exec(message)?.[1] ?? assert.fail(`no id: ${message}`));
}

export function withoutIds(raw: string): string {
  return raw.replaceAll(/^id: .*\n/gm, "");
}

interface StreamEvent {
  readonly type: string;
  readonly sequence_number: number;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly response?: any;
}

/** The events of a responses stream, without `[DONE]`. */
export function eventsOf(raw: string): StreamEvent[] {
  return messagesOf(raw).flatMap((message) => {
    const [, body = ""] = /^data: (\{.*\})$/m.exec(message) ?? [];
    return body === "" ? [] : [JSON.parse(body)];
  });
}

/** Starts a background turn and returns its id. */
export async function promise(address: string, more: object = {}, wish: Partial<Wish> = {}): Promise<string> {
  const asked: Wish = { on: "responses", say: "hi", ...wish, more: { background: true, ...wish.more, ...more } };
  const { body } = await askWell(address, asked);
  assert.deepEqual([body.status, body.background, body.output], ["queued", true, []]);
  return body.id;
}

export function look(address: string, id: string, query = ""): Promise<Answered> {
  return call(address, "GET", `/v1/responses/${id}${query}`);
}

/** Follows a turn to its end, and returns its response. */
export async function ended(address: string, id: string) {
  const { raw } = await look(address, id, "?stream=true");
  assert.match(raw, /data: \[DONE\]\n\n$/);
  return (await look(address, id)).body;
}

export function remove(address: string, id: string): Promise<Answered> {
  return call(address, "DELETE", `/v1/responses/${id}`);
}

export function cancel(address: string, id: string): Promise<Answered> {
  return call(address, "POST", `/v1/responses/${id}/cancel`);
}

/** Asks until there is room: what a turn held is given back with its end, or a moment after. */
export async function askForRoom(address: string, wish: Wish): Promise<Answered> {
  for (let tries = 0; tries < 200; tries++) {
    const answered = await ask(address, wish);
    if (answered.status !== 429 && answered.status !== 503) return answered;
  }
  return assert.fail("There is no room.");
}
