/** Plays a history of several clients to a gateway, step by step, and compares each with the rule. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { begin, call, type Endpoint, hear, readAll, tell, type Wish } from "../harness/client.ts";
import {
  type Delta,
  endAfter,
  gate,
  makeFolder,
  openGateway,
  operatorToken,
  say,
  type Scope,
  seenBy,
} from "../harness/house.ts";
import { createClients, type Fate, type Kind, nextSending, type Step } from "./clients.ts";
import { judge, type Session } from "./oracle.ts";
import { callIdOf, toDeltas, toWire, wordsOf } from "./script.ts";

/** A gateway to play to. */
export interface Stage {
  readonly address: string;
  /**
   * Lets the model answer the next request so; tells, once it was asked, what it saw. `moment`, of a crash: 0 before the
   * model answers, 1 with its answer, 2 when the caller has it.
   */
  rehearse(answer: readonly string[], fate: Fate, moment?: number): () => readonly string[] | undefined;
  /** Resolves when a caller who left is noticed. */
  aborted(): Promise<void>;
  restart(): Promise<void>;
}

export async function openStage(scope: Scope): Promise<Stage> {
  const folder = makeFolder(scope);
  const ends: (() => unknown)[] = [];
  const open = () => openGateway({ after: (end) => void ends.push(end) }, { folder });
  const close = async () => {
    for (const end of ends.splice(0)) await end();
  };
  let gateway = await open();
  endAfter(scope, close);
  let left = gate();
  return {
    get address() {
      return gateway.address;
    },
    rehearse(answer, fate) {
      const { model } = gateway;
      const before = model.turns.length;
      left = gate();
      model.script = (_, signal) => act(toDeltas(answer), fate, signal, left.open);
      return () => (model.turns.length > before ? seenBy(model.turns.at(-1)) : undefined);
    },
    aborted: () => left.opened,
    async restart() {
      await close();
      gateway = await open();
    },
  };
}

async function* act(
  deltas: readonly Delta[],
  fate: Fate,
  signal: AbortSignal,
  leave: () => void,
): AsyncGenerator<readonly Delta[], void> {
  if (fate === "fails before") throw new Error("not today");
  if (fate !== "leaves" && fate !== "fails after") return yield deltas;
  yield say("half");
  if (fate === "fails after") throw new Error("broke");
  await once(signal, "abort");
  leave();
}

const operator = { token: operatorToken };

let played = 0;

/** Throws with the whole history as text at the first request whose outcome differs from the rule. */
export async function checkHistory(
  stage: Stage,
  kinds: readonly Kind[],
  steps: readonly Step[],
  counts: Record<string, number>,
): Promise<void> {
  played += 1;
  const clients = createClients(kinds, `history ${played}`);
  const sessions = new Map<string, Session>();
  const log: string[] = [];
  let words = 0;
  const word = (kind: string) => `${kind}-${played}-${(words += 1)}-`;
  for (const step of steps) {
    const client = clients[step.who % clients.length]!;
    const session = sessionOf(sessions, client.user);
    const sending = nextSending(client, step, word);
    const answer = makeAnswer(step, word);
    const verdict = judge(session, sending.lines);
    log.push(`${client.user} sends ${JSON.stringify(sending.lines)}: ${verdict.told}, ${step.fate}`);
    try {
      // Killed before the model answers, as it does, or when the caller has the answer.
      const seen = stage.rehearse(answer, step.fate, step.choice % 3);
      const outcome = await send(stage, client.user, sending.lines, step);
      if (verdict.seen === undefined) {
        assert.deepEqual([outcome.code, seen()], ["tool_call_mismatch", undefined]);
        counts["refused"] = (counts["refused"] ?? 0) + 1;
        continue;
      }
      assert.deepEqual(seen()?.map(tidy), verdict.seen, "what the model sees");
      if (outcome.told !== undefined) assert.equal(outcome.told, verdict.told, "x-portico-history");
      counts[verdict.told] = (counts[verdict.told] ?? 0) + 1;
      if (step.fate === "crash") {
        await stage.restart();
        const stored = await call(stage.address, "GET", `/operator/export?user=${client.user}`, undefined, operator);
        const isKept = stored.raw.includes(callIdOf(answer[0]!) || wordsOf(answer[0]!));
        assert.ok(isKept || outcome.status !== 200, "an acknowledged turn was lost");
        if (isKept) verdict.keep(answer);
        if (outcome.status === 200) sending.hear(answer);
        counts[isKept ? "killed, kept" : "killed, lost"] = (counts[isKept ? "killed, kept" : "killed, lost"] ?? 0) + 1;
        continue;
      }
      if (["fails before", "fails after", "leaves"].includes(step.fate)) continue;
      assert.equal(outcome.status, 200);
      if (step.fate !== "unstored") verdict.keep(answer);
      sending.hear(answer);
      if (step.fate === "restart") await stage.restart();
    } catch (thrown) {
      throw new Error(`${log.join("\n")}\n${thrown instanceof Error ? thrown.message : thrown}`, { cause: thrown });
    }
  }
}

function sessionOf(sessions: Map<string, Session>, user: string): Session {
  const session = sessions.get(user) ?? { turns: [], shows: false };
  sessions.set(user, session);
  return session;
}

function makeAnswer({ calls, text }: Step, word: (kind: string) => string): readonly string[] {
  const made = Array.from({ length: calls }, () => `call ${word("c")}: f {}`);
  return text || calls === 0 ? [`assistant: ${word("says")}`, ...made] : made;
}

interface Outcome {
  readonly status: number;
  readonly code: unknown;
  readonly told: string | undefined;
}

async function send(stage: Stage, user: string, lines: readonly string[], step: Step): Promise<Outcome> {
  const on: Endpoint = step.isChat ? "chat" : "responses";
  const store = step.fate === "unstored" ? { store: false } : {};
  const list = step.isLoose ? toWire(on, lines).map(loosen) : toWire(on, lines);
  const wish: Wish = { on, say: list, stream: step.stream || step.fate === "leaves", more: { user, ...store } };
  if (step.fate !== "leaves") {
    const heard = await tell(stage.address, wish).catch((thrown: unknown) => {
      if (step.fate !== "crash") throw thrown;
    });
    if (heard === undefined) return { status: 0, code: undefined, told: undefined };
    return {
      status: heard.status,
      code: heard.error?.["code"],
      told: heard.headers.get("x-portico-history") ?? undefined,
    };
  }
  const response = await begin(stage.address, wish);
  const told = response.headers["x-portico-history"];
  if (response.statusCode !== 200) {
    const { error } = JSON.parse(await readAll(response));
    return { status: response.statusCode ?? 0, code: error.code, told: undefined };
  }
  await hear(response, "half");
  response.destroy();
  await stage.aborted();
  return { status: 200, code: undefined, told: typeof told === "string" ? told : undefined };
}

/** The same words as other clients write them. */
function loosen(message: unknown): unknown {
  const { content, role } = message as { readonly content?: unknown; readonly role?: string };
  const isTalk = (role === "user" || role === "assistant") && typeof content === "string";
  return isTalk ? { ...(message as object), content: `${content} \r\n` } : message;
}

/** A line as it was before it was loosened. */
const tidy = (line: string) => line.trimEnd();
