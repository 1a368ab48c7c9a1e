/**
 * Callers who talk until the gateway is killed and go on with the next one. Each knows what its end was received of, and
 * the model's server tells what it was shown.
 */
import assert from "node:assert/strict";
import { type Agent, type IncomingMessage, request as send } from "node:http";
import { type Endpoint, messagesOf, paths, readAnswer, type Server, toRequest, type Wish } from "../harness/client.ts";

/** How a client goes on: with the new message alone, with its whole history, or alone and with a key each turn. */
const manners = ["new", "shown", "keyed"] as const;

export interface Client {
  readonly user: string;
  readonly on: Endpoint;
  readonly stream: boolean;
  readonly manner: (typeof manners)[number];
  /** Questions whose answers' ends it has received, in order. */
  readonly known: string[];
  /** What it asked since then without receiving the end. */
  readonly unheard: string[];
  asked: number;
}

export function createClient(index: number): Client {
  return {
    user: `user-${index}`,
    on: index % 2 === 0 ? "chat" : "responses",
    stream: index % 4 < 2,
    manner: manners[index % 3]!,
    known: [],
    unheard: [],
    asked: 0,
  };
}

const linesOf = (question: string) => [`user: ${question}`, `assistant: re: ${question}`];

/** What the model was shown for each question, a line a message. */
export function gatherShown({ received }: Server): (question: string) => readonly string[] | undefined {
  const shown = new Map<string, readonly string[]>();
  let read = 0;
  return (question) => {
    for (const one of received.slice(read)) {
      const lines = messagesOf(one).map(({ role, content }) => `${role}: ${content}`);
      shown.set(lines.at(-1)!, lines);
    }
    read = received.length;
    return shown.get(`user: ${question}`);
  };
}

/**
 * One turn; false if its end was not received, or it may fail and did. Of what this client knows the model must have seen all, once and in order;
 * after it at most turns that were in flight at a crash, whole.
 */
export async function takeTurn(
  client: Client,
  address: string,
  agent: Agent,
  shownFor: (question: string) => readonly string[] | undefined,
  mayFail = false,
): Promise<boolean> {
  const { user, on, stream, manner, known, unheard } = client;
  const repeated = manner === "keyed" ? unheard.pop() : undefined;
  if (repeated === undefined) client.asked += 1;
  const question = repeated ?? `${user} asks for the ${client.asked}. time`;
  const shown = known.flatMap(linesOf).map((line) => {
    const [, role, content] = /^(\w+): (.*)$/.exec(line)!;
    return { role, content };
  });
  const say = manner === "shown" ? [...shown, { role: "user", content: question }] : question;
  const headers: Record<string, string> = manner === "keyed" ? { "idempotency-key": question } : {};
  const wish: Wish = { on, stream, say, more: { user }, headers };
  const received = await receive(address, agent, wish);
  const text = received && !(mayFail && hasFailed(received)) ? textOf(wish, received) : undefined;
  if (received === undefined || text === undefined) {
    unheard.push(question);
    return false;
  }
  assert.equal(text, `re: ${question}`, user);

  const seen = shownFor(question);
  assert.ok(seen !== undefined, `${user}: the model was asked`);
  // Some may have been stored before a crash, though their caller never heard the end.
  const kept = manner === "new" ? unheard.filter((one) => seen.includes(`user: ${one}`)) : [];
  assert.deepEqual(seen, [...[...known, ...kept].flatMap(linesOf), `user: ${question}`], user);
  // What was acknowledged to a client that shows it is found in the store.
  const history = received.headers.get("x-portico-history");
  if (manner === "shown" && known.length > 0) assert.match(String(history), /^(matched|forked)$/, user);
  known.push(...kept, question);
  unheard.length = 0;
  return true;
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

/** It was told that it failed. */
function hasFailed({ status, raw }: Received): boolean {
  return status >= 500 || /^data: \{"error":|^event: response\.failed/m.test(raw);
}

/** The answer's text; undefined if it was cut off. */
function textOf(wish: Wish, { status, headers, raw, complete }: Received): string | undefined {
  let whole = raw.replaceAll(/^id: .*\n/gm, "");
  if (!complete) {
    const end = wish.stream ? terminalEvent[wish.on].exec(whole) : null;
    if (end === null) return undefined;
    whole = `${whole.slice(0, end.index)}${end[0]}data: [DONE]\n\n`;
  }
  const heard = readAnswer(wish, status, headers, whole);
  assert.deepEqual([heard.status, heard.error], [200, undefined], raw);
  return heard.text;
}
