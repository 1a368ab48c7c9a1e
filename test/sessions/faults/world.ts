/** A gateway with faults, and callers that record what they receive. */
import type { Delta } from "../../../src/core/delta.ts";
import { callerLeft, GatewayError } from "../../../src/core/errors.ts";
import type { Event, Events } from "../../../src/core/event.ts";
import type { Caller, Gateway, GatewayLimits, Reply } from "../../../src/core/gateway.ts";
import type { Item } from "../../../src/core/item.ts";
import type { SessionStore } from "../../../src/core/store.ts";
import type { Answer, Ask, Turn } from "../../../src/core/turn.ts";
import { createIds } from "../../../src/ids.ts";
import { makeGateway } from "../../making.ts";
import { createTroubledAdapter, createTroubledStore, type How, type Trouble, wait } from "./trouble.ts";

export interface World {
  readonly gateway: Gateway;
  /** The store without the faults. */
  readonly store: SessionStore;
  newId(): string;
  /** Asks, and reads the answer to its end, or disconnects. It never rejects. */
  ask(ask: Partial<Ask>, caller?: Partial<Caller>): Promise<Outcome>;
  /** Does something else for a caller that may disconnect; undefined: it failed. */
  attempt<Result>(work: (signal: AbortSignal, turnId: string) => Promise<Result>): Promise<Result | undefined>;
  /** What all callers received, in the order in which they came. */
  readonly outcomes: readonly Outcome[];
  /** The turns that the store has stored, in order, whether it could confirm so or not. */
  readonly stored: readonly string[];
  /** Those that it could not confirm. */
  readonly lost: ReadonlySet<string>;
  /** The calls that failed, including those of the adapter. */
  readonly struck: readonly { readonly name: string; readonly how: How }[];
  /** All errors thrown at callers. */
  readonly failures: readonly unknown[];
  /** How many turns hold a slot without their callers. */
  stays(): number;
  /** The turns that ended without their callers. */
  readonly alone: readonly string[];
  /** What the model saw for a turn. */
  seen(turnId: string): readonly Item[];
  /** What it answered. */
  said(turnId: string): readonly Item[];
}

/** What a caller received of its turn. */
export interface Outcome {
  readonly id: string;
  readonly items: readonly Item[];
  /** It must be stored. */
  readonly isWanted: boolean;
  /** It continues without its caller. */
  readonly outlivesCaller: boolean;
  /**
   * `thrown`: it failed before anything was sent; `begun`: nothing more is expected; `left`: it has not received the
   * end.
   */
  status: Answer["status"] | "thrown" | "begun" | "left";
  code: string | undefined;
  text: string;
  /** The turn that was reported, which may be that of an earlier request. */
  about: Reply["about"] | undefined;
  isRepeated: boolean;
  /** The caller has disconnected, before its end or just at it. */
  hasDisconnected: boolean;
}

const noOutcome = { code: undefined, text: "", about: undefined, isRepeated: false, hasDisconnected: false } as const;

/** A current caller, which may disconnect. */
interface Asker {
  readonly turnId: string;
  leave(how: How): void;
}

export const owner = "ann";
export const user = (content: string): Item => ({ type: "message", role: "user", content });
export const assistant = (content: string): Item => ({ type: "message", role: "assistant", content });

const newId = createIds(() => new Date());

export function createWorld(store: SessionStore, trouble: Trouble, limits: Partial<GatewayLimits> = {}): World {
  const outcomes: Outcome[] = [];
  const stored: string[] = [];
  const lost = new Set<string>();
  const struck: { name: string; how: How }[] = [];
  const turns = new Map<string, { readonly turn: Turn; readonly said: Delta[] }>();
  const askers: Asker[] = [];
  const alone: string[] = [];
  const failures: unknown[] = [];
  let stays = 0;
  let current: How | undefined;

  function stay(): () => void {
    stays++;
    return () => void stays--;
  }

  const noting: SessionStore = {
    ...store,
    async commit(commit) {
      const isLost = current === "loses its answer";
      const isStored = await store.commit(commit);
      for (const { id } of isStored ? commit.turns : []) {
        stored.push(id);
        if (isLost) lost.add(id);
      }
      return isStored;
    },
  };

  function onCall(name: string, how: How | undefined): void {
    current = how;
    if (how !== undefined) struck.push({ name, how });
    const [oldest, newest] = [askers[0], askers.at(-1)];
    const [first, last] = [trouble.due("oldest caller"), trouble.due("newest caller")];
    if (first !== undefined) oldest?.leave(first);
    if (last !== undefined) newest?.leave(last);
  }

  /** The caller that started it disconnects; what continues without it is cancelled, or deleted. */
  async function cancelHanging(turnId: string): Promise<void> {
    await wait(15);
    askers.find((asker) => asker.turnId === turnId)?.leave("aborts");
    const turn = await gateway.cancel(owner, turnId).catch(() => undefined);
    if (turn?.background === false) await gateway.forget(owner, turnId).catch(() => {});
  }

  const adapter = createTroubledAdapter({
    trouble,
    script,
    asked: (turn) => void turns.set(turn.id, { turn, said: [] }),
    said: (turn, batch) => turns.get(turn.id)?.said.push(...batch),
    struck: (how) => struck.push({ name: "stream", how }),
    hangs: (turn) => void cancelHanging(turn.id),
  });
  const observer = { placed() {}, endedWithoutCaller: ({ turnId }: { turnId: string }) => void alone.push(turnId) };
  const gateway = makeGateway({
    adapter,
    store: createTroubledStore(noting, trouble, onCall),
    limits,
    observer,
    newSessionId: () => newId("conv"),
  });

  /** What the caller does while it is connected. */
  async function during<Result>(asker: Asker, work: () => Promise<Result>): Promise<Result> {
    askers.push(asker);
    try {
      if (trouble.due("caller") !== undefined) asker.leave("aborts");
      return await work();
    } finally {
      askers.splice(askers.indexOf(asker), 1);
    }
  }

  async function read(outcome: Outcome, events: Events, leave: (how: How) => void): Promise<void> {
    for (;;) {
      const how = trouble.due("caller");
      if (how === "returns") {
        leave("returns");
        return;
      }
      if (how === "aborts") leave("aborts");
      const pulling = events.next();
      if (how === "returns while it waits") leave("returns");
      if (how === "aborts and returns") leave("aborts and returns");
      const step = await pulling;
      if (step.done === true) return;
      for (const event of step.value) note(outcome, event);
    }
  }

  async function ask(outcome: Outcome, asked: Ask, caller: Omit<Caller, "signal">): Promise<void> {
    const leaving = new AbortController();
    let events: Events | undefined;
    const leave = (how: How): void => {
      outcome.hasDisconnected ||= how !== "returns" || events !== undefined;
      if (how !== "returns") leaving.abort(callerLeft());
      if (how !== "aborts") void events?.return();
    };
    try {
      await during({ turnId: outcome.id, leave }, async () => {
        const reply = await gateway.answer(asked, { ...caller, signal: leaving.signal });
        outcome.about = reply.about;
        outcome.isRepeated = reply.isRepeated === true;
        outcome.status = asked.background === true && !asked.stream ? "begun" : "left";
        if (outcome.status === "begun") return void (await reply.events.return());
        await read(outcome, (events = reply.events), leave);
      });
    } catch (thrown) {
      if (outcome.status !== "thrown" && outcome.status !== "left") return;
      outcome.status = outcome.hasDisconnected && outcome.outlivesCaller ? "left" : "thrown";
      outcome.code = thrown instanceof GatewayError ? thrown.code : String(thrown);
      failures.push(thrown);
    }
  }

  return {
    gateway,
    store,
    newId: () => newId("resp"),
    async ask(asked, caller = {}) {
      const whole: Ask = { ...usual, ...asked };
      const turnId = caller.turnId ?? newId("resp");
      const items = whole.items.filter((item) => item.type !== "reference");
      const isWanted = whole.keep === "yes" || (whole.keep === "in-session" && caller.hint !== undefined);
      const outlivesCaller = whole.background === true || caller.key !== undefined;
      const outcome: Outcome = { id: turnId, items, isWanted, outlivesCaller, status: "thrown", ...noOutcome };
      outcomes.push(outcome);
      await ask(outcome, whole, { owner, hint: undefined, stay, ...caller, turnId });
      return outcome;
    },
    async attempt(work) {
      const leaving = new AbortController();
      const turnId = newId("resp");
      const leave = (): void => leaving.abort(callerLeft());
      return during({ turnId, leave }, () => work(leaving.signal, turnId)).catch((thrown) => {
        failures.push(thrown);
        return undefined;
      });
    },
    outcomes,
    stored,
    lost,
    struck,
    failures,
    stays: () => stays,
    alone,
    seen: (turnId) => turns.get(turnId)?.turn.items ?? [],
    said: (turnId) => toItems(turns.get(turnId)?.said ?? []),
  };
}

const usual: Ask = {
  model: "m",
  items: [user("hi")],
  itemsParam: "input",
  settings: { tools: [] },
  stream: true,
  keep: "yes",
};

function note(outcome: Outcome, event: Event): void {
  if (event.type === "item-delta" && event.kind === "text") outcome.text += event.text;
  if (event.type !== "turn-end") return;
  outcome.status = event.answer.status;
  outcome.code = event.answer.error?.code;
}

/** Calls a tool when asked to, and otherwise repeats the last message, in pieces. */
function script({ id, items }: Turn): readonly (readonly Delta[])[] {
  const last = items.at(-1);
  const lastText = last?.type === "message" && typeof last.content === "string" ? last.content : "a tool";
  if (lastText.startsWith("CALL")) {
    return [
      [{ type: "tool-call", index: 0, callId: `call_${id}`, name: "f" }],
      [{ type: "tool-arguments", index: 0, text: "{}" }],
    ];
  }
  return [
    [{ type: "text", text: "re: " }],
    [{ type: "text", text: lastText.slice(0, 40) }],
    [{ type: "finish", reason: "stop" }],
  ];
}

function toItems(said: readonly Delta[]): readonly Item[] {
  const text = said.map((delta) => (delta.type === "text" ? delta.text : "")).join("");
  // A call without arguments has none.
  const written = said.map((delta) => (delta.type === "tool-arguments" ? delta.text : "")).join("") || "{}";
  const calls = said.flatMap((delta): Item[] =>
    delta.type === "tool-call"
      ? [{ type: "tool-call", kind: "function", callId: delta.callId ?? "", name: delta.name, arguments: written }]
      : [],
  );
  return text === "" ? calls : [assistant(text), ...calls];
}
