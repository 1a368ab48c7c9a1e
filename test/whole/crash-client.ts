/** A client that sends only new messages, and remembers what it received until the gateway dies. */
import assert from "node:assert/strict";
import { type Agent, type IncomingMessage, request as send } from "node:http";
import { type Endpoint, type Heard, paths, readAnswer, toRequest, type Wish } from "./talk.ts";

export interface Client {
  readonly user: string;
  readonly on: Endpoint;
  readonly stream: boolean;
  /** What its session must contain, in this order. */
  readonly known: Exchange[];
  /** What it asked without receiving the end. */
  inFlight: string | undefined;
  asked: number;
}

export interface Exchange {
  /** What all ids of the turn have in common. */
  readonly id: string;
  readonly question: string;
  readonly answer: string;
}

export function createClient(index: number): Client {
  return {
    user: `user-${index}`,
    on: index % 2 === 0 ? "chat" : "responses",
    stream: index % 4 < 2,
    known: [],
    inFlight: undefined,
    asked: 0,
  };
}

/** Runs turn after turn until the gateway is killed; `answered` is called for each that is acknowledged. */
export async function talkOn(
  client: Client,
  address: string,
  agent: Agent,
  killed: AbortSignal,
  answered: () => void,
): Promise<void> {
  while (!killed.aborted) {
    const told = await takeTurn(client, address, agent);
    if (told) answered();
    else assert.ok(killed.aborted, `${client.user}: an answer was cut off while the gateway was alive`);
  }
}

/** One turn; false if its end was not received. The model must have seen exactly what this client knows. */
export async function takeTurn(client: Client, address: string, agent: Agent): Promise<boolean> {
  const { user, on, stream, known } = client;
  client.asked += 1;
  const question = `${user} asks for the ${client.asked}. time`;
  client.inFlight = question;
  const wish: Wish = { on, stream, say: question, more: { user } };
  const received = await receive(address, agent, wish);
  if (received === undefined) return false;
  assert.equal(received.headers.get("x-portico-history"), known.length === 0 ? "new" : "continued", user);
  assert.equal(received.headers.get("x-portico-context"), `${2 * known.length + 1} items`, user);
  const heard = toHeard(wish, received);
  if (heard === undefined) return false;
  assert.deepEqual([heard.status, heard.error, heard.text], [200, undefined, question], heard.raw);
  known.push({ id: withoutKind(heard.id), question, answer: heard.text });
  client.inFlight = undefined;
  return true;
}

/** `resp_1f` and `chatcmpl-1f` are ids of one turn. */
export function withoutKind(id: string): string {
  return id.replace(/^[a-z]+[-_]/, "");
}

interface Received {
  readonly status: number;
  readonly headers: Headers;
  /** All bytes that arrived, even of an answer that was cut off. */
  readonly raw: string;
  readonly complete: boolean;
}

function receive(address: string, agent: Agent, wish: Wish): Promise<Received | undefined> {
  const { body, ...head } = toRequest(wish);
  return new Promise((resolve) => {
    let hasResponse = false;
    const request = send(address + paths[wish.on], { ...head, agent }, (response: IncomingMessage) => {
      hasResponse = true;
      let raw = "";
      response.setEncoding("utf8").on("data", (piece: string) => (raw += piece));
      response.on("error", () => {}); // that it was cut off is known from `complete`
      response.on("close", () => {
        const headers = new Headers(response.headers as Record<string, string>);
        resolve({ status: response.statusCode ?? 0, headers, raw, complete: response.complete });
      });
    });
    // Once there is a response, it reports its own end.
    request.on("error", () => hasResponse || resolve(undefined));
    request.end(body);
  });
}

/** A stream's terminal event acknowledges the turn, even if the connection dies right after it. */
const terminalEvent = {
  chat: /^data: [^\n]*"finish_reason":"stop"[^\n]*\n\n/m,
  responses: /^event: response\.completed\n[^\n]+\n\n/m,
} as const;

function toHeard(wish: Wish, { status, headers, raw, complete }: Received): Heard | undefined {
  if (complete) return readAnswer(wish, status, headers, raw);
  const end = wish.stream ? terminalEvent[wish.on].exec(raw) : null;
  if (end === null) return undefined;
  return readAnswer(wish, status, headers, `${raw.slice(0, end.index)}${end[0]}data: [DONE]\n\n`);
}
