/** Runs a history of requests against a gateway, and compares each with the reference. */
import assert from "node:assert/strict";
import type { Delta } from "../../src/core/delta.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Gateway, Reply } from "../../src/core/gateway.ts";
import type { Item } from "../../src/core/item.ts";
import type { Adapter, History } from "../../src/core/ports.ts";
import type { SessionStore } from "../../src/core/store.ts";
import type { Answer, Turn } from "../../src/core/turn.ts";
import { createMemoryStore } from "../stores/memory.ts";
import {
  type Client,
  createClients,
  type Kind,
  nextSending,
  type Sending,
  sendsOnlyNew,
  type Step,
  type Words,
} from "./clients.ts";
import {
  createKnownSession,
  expectStateless,
  expectTurn,
  forgetTurn,
  isSaid,
  keepTurn,
  type KnownSession,
  type Said,
  steeringOf,
  textOf,
  toScript,
  withoutOpenCalls,
} from "./model.ts";
import { makeGateway } from "../making.ts";

/** Where a gateway works. */
export interface Site {
  readonly store: SessionStore;
  /** Releases what its gateway held: it is gone. */
  die?(): void;
  /** Called once, when the history is over. */
  close?(): Promise<void>;
}

/**
 * Throws with the whole history as text at the first request whose result differs from the rule. Each site has a
 * gateway, and every request goes to a different one than the request before it.
 */
export async function live(
  kinds: readonly Kind[],
  steps: readonly Step[],
  sites: readonly Site[] = [{ store: createMemoryStore() }],
): Promise<Counts> {
  const sessions = new Map<string, KnownSession>();
  const sessionIds = new Map<string, string>();
  const clients = createClients(kinds);
  const words = createWords();
  const adapter = createActor(words);
  const log: (() => string)[] = [];
  const counts: Counts = {};
  const gateways = sites.map(({ store }) => openGateway(adapter, store, words));
  /** The gateway of a site, a new one if the one before is gone. */
  function visit(index: number, isGone = false): Gateway {
    const site = sites[index % sites.length];
    const gateway = gateways[index % sites.length];
    if (site === undefined || gateway === undefined) throw new Error("no gateway");
    if (!isGone) return gateway;
    site.die?.();
    return (gateways[index % sites.length] = openGateway(adapter, site.store, words));
  }

  for (const [index, step] of steps.entries()) {
    const client = chooseClient(clients, step, sessions);
    const session = sessionOf(sessions, client);
    const deleted = chooseDeleted(session, step, client);
    if (deleted?.turnId !== undefined) {
      log.push(() => `${deleted.turnId} is deleted: ${deleted.lines.join(" / ")}`);
      await visit(index + 1).forget("ann", deleted.turnId);
      forgetTurn(session, deleted);
      forgetExchange(client, deleted.turnId);
    }
    const isVague = session.isVague;
    const sending = nextSending(client, step, !isVague && (session.tip === undefined || session.resends), words);
    const gateway = visit(index, step.restart);
    const expected = client.user === undefined ? expectStateless(sending.items) : expectTurn(session, sending.items);
    const { history } = expected;
    const isStored = client.user !== undefined && (step.fate === "kept" || step.fate === "cut");
    log.push(() => describe(client, step, sending, history));
    try {
      if (isStray(sending)) {
        await assert.rejects(ask(gateway, adapter, client, step, sending, words), { code: "tool_call_mismatch" });
        continue;
      }
      const outcome = await ask(gateway, adapter, client, step, sending, words);
      const seen = adapter.seen;
      if (seen === undefined) throw new Error("the adapter was not asked");
      const isWhole = !session.said.some(({ gap }) => gap);
      if (client.user !== undefined && isWhole) checkOwnWords(seen.items, client, sending);
      if (!isVague) {
        assert.deepEqual(toScript(seen.items), toScript(expected.seen), "what the model sees");
        assert.deepEqual(steeringOf(seen.items), expected.system, "the system messages that apply");
        const isLast = steeringOf(sending.items.slice(-1)).length > 0;
        const place = isLast || expected.system.length === 0 ? seen.items.at(-1) : seen.items[0];
        assert.equal(steeringOf(place ? [place] : []).length, expected.system.length, "where they are placed");
        assert.equal(outcome.about.history, history, "how the history was matched");
      }
      assert.equal(outcome.about.contextItems, seen.items.length, "how many items the model sees");
      checkSession(sessionIds, client, outcome.about.session, isStored);
      counts[history] = (counts[history] ?? 0) + 1;
      remember(client, session, step, sending, outcome, isStored, expected);
      if (step.fate === "crash") visit(index, true);
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      throw new Error(`${log.map((line) => line()).join("\n")}\n${message}`, { cause: thrown });
    }
  }
  return counts;
}

/** How often each result of matching occurred. */
export type Counts = Partial<Record<History, number>>;

/** A shared name is safe once its session is known to resend: until then only the first of its clients sends. */
function chooseClient(clients: readonly Client[], step: Step, sessions: ReadonlyMap<string, KnownSession>): Client {
  const chosen = clients[step.who % clients.length];
  if (chosen === undefined) throw new Error("no clients");
  const shared = sessions.get("app");
  if (chosen.kind !== "constant" || (shared?.resends === true && !shared.isVague)) return chosen;
  return clients.find((client) => client.kind === "constant") ?? chosen;
}

/** Which turn of the session is deleted before the step, if any. */
function chooseDeleted(session: KnownSession, { deletes, choice }: Step, { kind }: Client): Said | undefined {
  if (deletes === "none" || session.isVague) return undefined;
  const { said, tip } = session;
  const items = said.flatMap((each) => each.items);
  const answered = new Set(items.flatMap((item) => (item.type === "tool-output" ? [item.callId] : [])));
  // For clients that do not show everything, outputs without their calls no longer say which of several calls they
  // answer.
  const showsAll = kind === "resending" || kind === "constant";
  const staysWhole = (turn: Said): boolean =>
    showsAll || !turn.items.some((item) => item.type === "tool-call" && answered.has(item.callId));
  const turns = said.filter((each) => each.turnId !== undefined && staysWhole(each));
  return deletes === "newest" ? tip : turns[choice % turns.length];
}

/** A client that sends only new items knows no more than the gateway does. */
function forgetExchange(client: Client, turnId: string): void {
  if (!sendsOnlyNew(client)) return;
  const remaining = client.exchanges.splice(0).filter((exchange) => exchange.turnId !== turnId);
  for (const exchange of remaining) client.exchanges.push({ ...exchange, after: client.exchanges.at(-1) });
}

/** Without a name there is no session: each request stands alone. */
function sessionOf(sessions: Map<string, KnownSession>, { user, kind }: Client): KnownSession {
  const session = sessions.get(user ?? "") ?? createKnownSession(kind === "stepping");
  if (user !== undefined) sessions.set(user, session);
  return session;
}

/** Whatever the rule says: the model sees all that was sent, and nothing from other conversations. */
function checkOwnWords(seen: readonly Item[], client: Client, { items, whole }: Sending): void {
  const own = toScript(withoutBlanks(withoutOpenCalls(whole))).join("\n");
  const saw = toScript(withoutBlanks(seen)).join("\n");
  if (sendsOnlyNew(client)) return assert.equal(saw, own, "the model sees the whole conversation");
  // Before the first of them there may be a message of the same role without an answer.
  const sent = toScript(withoutBlanks(withoutOpenCalls(items)))
    .join("\n")
    .replace(/^user: /, "");
  assert.ok(saw.endsWith(sent), `the model sees all that was sent, but saw\n${saw}`);
  assert.ok(own.endsWith(saw.replace(/^user: /, "")), `the model sees only this conversation, but saw\n${saw}`);
}

function isStray({ input }: Sending): boolean {
  return input.some((item) => item.type === "tool-output" && item.callId.startsWith("stray"));
}

interface Outcome {
  readonly about: Reply["about"];
  /** What the client received, complete or in part; empty when the turn failed at once. */
  readonly received: readonly Item[];
  readonly answer: Answer | undefined;
}

async function ask(
  gateway: Gateway,
  adapter: Actor,
  client: Client,
  step: Step,
  sending: Sending,
  words: Words,
): Promise<Outcome> {
  adapter.prepare(step, sending);
  const leaving = new AbortController();
  const isReceived = step.fate === "kept" || step.fate === "cut" || step.fate === "unstored";
  const key =
    isReceived && step.choice % 4 === 0 ? { key: words.fresh("key"), fingerprint: "f", param: "key" } : undefined;
  const send = () =>
    gateway.answer(
      {
        model: "m",
        items: sending.items,
        itemsParam: "messages",
        settings: { tools: [] },
        stream: step.choice % 2 === 0,
        keep:
          step.fate === "unstored" ? "no" : client.user !== undefined && step.choice % 3 === 0 ? "yes" : "in-session",
        background: step.fate === "kept" && !isStray(sending) && client.user !== undefined && step.choice % 5 === 0,
      },
      {
        turnId: words.fresh("resp_"),
        owner: "ann",
        hint: client.user,
        hintsAtTalk: client.kind === "stepping",
        signal: leaving.signal,
        key,
      },
    );
  const { about, events } = await send();
  let answer: Answer | undefined;
  let text = "";
  try {
    for await (const batch of events) {
      for (const event of batch) {
        if (event.type === "item-delta" && event.kind === "text") text += event.text;
        if (event.type === "turn-end") ({ answer } = event);
      }
      if (answer !== undefined) continue;
      if (step.fate === "returns") break;
      if (step.fate === "crash") return { about, received: halfOf(text), answer };
      if (step.fate.startsWith("leaves")) leaving.abort(new GatewayError("client_closed", "The client left."));
    }
  } catch (thrown) {
    assert.equal(step.fate, "fails before", `nothing else fails at once: ${String(thrown)}`);
    return { about, received: [], answer };
  }
  const status = { kept: "completed", cut: "incomplete", unstored: "completed", returns: undefined }[
    step.fate as string
  ];
  if (step.fate !== "returns") assert.equal(answer?.status, status ?? "failed", "how the answer ends");
  if (key !== undefined) await checkRepeated(adapter, await send(), answer);
  return { about, received: answer?.status === "failed" ? halfOf(text) : (answer?.items ?? halfOf(text)), answer };
}

/** A request that is sent again with its key gets the same answer, and the model is not asked again. */
async function checkRepeated(adapter: Actor, { isRepeated, events }: Reply, answer: Answer | undefined): Promise<void> {
  const { seen } = adapter;
  const last = (await Array.fromAsync(events)).at(-1)?.at(-1);
  assert.equal(isRepeated, true, "a key identifies a repeated request");
  assert.deepEqual(last?.type === "turn-end" && last.answer.items, answer?.items, "a key returns the same answer");
  assert.equal(adapter.seen, seen, "the model is asked once");
}

function halfOf(text: string): readonly Item[] {
  return text === "" ? [] : [{ type: "message", role: "assistant", content: text }];
}

function remember(
  client: Client,
  session: KnownSession,
  step: Step,
  { items, after, input }: Sending,
  { about, received, answer }: Outcome,
  isStored: boolean,
  expected: ReturnType<typeof expectTurn>,
): void {
  if (isStored) keepTurn(session, items, expected, answer?.items ?? [], about.id);
  const isWhole = answer !== undefined && answer.status !== "failed";
  // A client that sends only new items does not decide what is remembered.
  const remembers = sendsOnlyNew(client) ? isStored : isWhole || (step.keepsHalf && received.length > 0);
  session.isVague ||= step.answer.isBlank && (isStored || remembers);
  const output = step.answer.isBlank && step.keepsHalf ? [...received, blank] : received;
  if (remembers) client.exchanges.push({ turnId: about.id, after, input, output });
}

/** How some clients show that there was an answer. */
const blank: Item = { type: "message", role: "assistant", content: "" };

function withoutBlanks(items: readonly Item[]): readonly Item[] {
  return items.filter((item) => item.type !== "message" || item.role !== "assistant" || textOf(item) !== "");
}

function checkSession(ids: Map<string, string>, client: Client, id: string | undefined, isStored: boolean): void {
  const known = client.user === undefined ? undefined : ids.get(client.user);
  if (known !== undefined || !isStored)
    return id === undefined ? undefined : assert.ok(known === undefined || known === id);
  assert.ok(id !== undefined && ![...ids.values()].includes(id), "a new session has its own id");
  ids.set(client.user ?? "", id);
}

/** An adapter that plays the step's script, and records what it saw last. */
interface Actor extends Adapter {
  readonly seen: Turn | undefined;
  prepare(step: Step, sending: Sending): void;
}

function createActor(words: Words): Actor {
  let seen: Turn | undefined;
  let deltas: readonly Delta[] = [];
  let fate: Step["fate"] = "kept";
  return {
    get seen() {
      return seen;
    },
    prepare(step, { items }) {
      seen = undefined;
      fate = step.fate;
      deltas = toDeltas(step, items, words);
    },
    async *stream(turn, signal) {
      seen = turn;
      if (fate === "fails before") throw new GatewayError("adapter_error", "Nothing to say.");
      for (const [index, delta] of deltas.entries()) {
        if (index > 0 && fate === "fails after") throw new GatewayError("adapter_error", "Lost the thread.");
        if (fate === "leaves") signal.throwIfAborted();
        yield [delta];
      }
      if (fate === "fails after") throw new GatewayError("adapter_error", "Lost the thread.");
    },
  };
}

function toDeltas({ answer, fate }: Step, items: readonly Item[], words: Words): readonly Delta[] {
  // A line this short comes from the last item alone; the one before it shows whether it does.
  const isCommon = toScript(items.filter(isSaid).slice(-2)).at(-1) === "user: hi";
  const deltas: Delta[] = [];
  if (answer.reasons || answer.isBlank) deltas.push({ type: "reasoning", text: words.fresh("thinks") });
  if (answer.isBlank) return fate === "cut" ? [...deltas, { type: "finish", reason: "length" }] : deltas;
  const texts = Math.max(answer.text, answer.calls === 0 ? 1 : 0);
  for (let index = 0; index < texts; index++) {
    if (index > 0) deltas.push({ type: "reasoning", text: words.fresh("thinks") });
    deltas.push({ type: "text", text: isCommon && index === 0 ? "hello" : `${words.fresh("says")}\n\nand so on` });
  }
  for (let index = 0; index < answer.calls; index++) {
    deltas.push({ type: "tool-call", index, callId: words.fresh("call"), name: "look" });
    const nested = JSON.stringify({
      what: isCommon ? "thing" : words.fresh("thing"),
      how: { far: index, near: [1, { b: 2, a: 1 }] },
    });
    deltas.push({ type: "tool-arguments", index, text: nested });
  }
  if (fate === "cut") deltas.push({ type: "finish", reason: "length" });
  return deltas;
}

function createWords(): Words {
  let count = 0;
  return { fresh: (prefix) => `${prefix}${++count}` };
}

function openGateway(adapter: Adapter, store: SessionStore, words: Words): Gateway {
  return makeGateway({
    adapter,
    store,
    limits: { maxItems: 4096, maxQueuedPerThread: 16 },
    now: () => new Date(0),
    newSessionId: () => words.fresh("conv_"),
  });
}

function describe(client: Client, step: Step, { items }: Sending, history: History): string {
  const lines = [...steeringOf(items), ...toScript(items)];
  const restart = step.restart ? "after a restart, " : "";
  const head = `${restart}${client.name} (${step.move}) sends, the turn is ${step.fate}, expected ${history}:`;
  return [head, ...lines.map((line) => `    ${line.replaceAll("\n", " / ")}`)].join("\n");
}
