/** Turns, sessions and threads for the tests of the stores. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Item } from "../../src/core/item.ts";
import { turnsOf } from "../../src/core/place/path.ts";
import type {
  ArchiveRecord,
  Conversation,
  PathTurn,
  Pruned,
  PruneRules,
  SessionMove,
  SessionStore,
  StoredTurn,
  Told,
} from "../../src/core/store.ts";

/** Commits a turn below another one, in its session, without moving the tip. */
export async function keepBelow(
  store: SessionStore,
  parent: StoredTurn,
  wanted: Partial<StoredTurn>,
): Promise<StoredTurn> {
  const turn = makeTurn({ session: parent.session, parent: parent.id, ...wanted });
  assert.equal(await store.commit({ turns: [turn] }), true);
  return turn;
}

/** Commits a sessionless thread. */
export async function keepLoose(store: SessionStore, length: number, createdAt: Date): Promise<StoredTurn[]> {
  let parent: string | undefined;
  const turns = Array.from({ length }, () => {
    const turn = makeTurn({ parent, createdAt });
    parent = turn.id;
    return turn;
  });
  await Promise.all(turns.map((turn) => store.commit({ turns: [turn] })));
  return turns;
}

/** The turns of a path, from the root. */
export async function readTurns(store: SessionStore, turnId: string): Promise<readonly PathTurn[]> {
  return turnsOf(await store.readPath(turnId));
}

/** A shown history, with the given fields, and the turn that follows it. */
export function makePair(wanted: Partial<StoredTurn>): [StoredTurn, StoredTurn] {
  const shown = makeTurn({ ...wanted, output: [], status: "shown", usage: undefined });
  return [shown, makeTurn({ session: shown.session, parent: shown.id })];
}

/** Commits, in one tick, a thread of alice's session under the hint `hint`. */
export async function keepThread(store: SessionStore, length: number): Promise<StoredTurn[]> {
  const session = newSessionId();
  const thread: StoredTurn[] = [];
  const commits: Promise<boolean>[] = [];
  for (let index = 0; index < length; index += 1) {
    const parent = thread.at(-1)?.id;
    const turn = makeTurn({ session, parent });
    thread.push(turn);
    const move = parent === undefined ? toCreate(turn, "hint") : toMove(turn, parent, "refuse");
    commits.push(store.commit({ turns: [turn], session: move }));
  }
  const results = await Promise.all(commits);
  assert.ok(results.every(Boolean));
  return thread;
}

export function makeTurn(wanted: Partial<StoredTurn>): StoredTurn {
  return {
    id: newTurnId(),
    owner: "alice",
    session: undefined,
    parent: undefined,
    createdAt: new Date("2026-02-03T04:05:06.789Z"),
    model: "a-model",
    input: [{ type: "message", role: "user", content: "Why is the sky blue?" }],
    output: [{ type: "message", role: "assistant", content: "Short waves scatter more." }],
    status: "completed",
    usage: { inputTokens: 7, cachedTokens: 0, outputTokens: 5, reasoningTokens: 0 },
    digest: undefined,
    exchange: undefined,
    ...wanted,
  };
}

export function makeTold(wanted: Partial<Told>): Told {
  return {
    history: undefined,
    contextItems: undefined,
    omittedItems: 0,
    truncation: "disabled",
    endedAt: undefined,
    finish: "stop",
    notes: {},
    ...wanted,
  };
}

export const fullTold: Told = {
  history: "forked",
  contextItems: 12,
  omittedItems: 3,
  truncation: "auto",
  endedAt: new Date("2026-02-03T04:05:07.001Z"),
  finish: "content-filter",
  others: [{ finish: "length", items: [{ type: "message", role: "assistant", content: "Green: ü€𝄞" }] }],
  notes: { fingerprint: "fp_1", serviceTier: "default" },
  failure: { code: "adapter_error", message: "It broke: ü€𝄞", param: "input", wireCode: "server_error" },
  pieces: [[{ kind: "text", part: 0, lengths: [1, 2, 3], logprobs: [0, 1, 0] }], []],
  memo: '{"dialect":"responses", "metadata":{"a":"1"}}\n',
  background: true,
  brokenOff: 1,
};

export function makeConversation(wanted: Partial<Conversation>): Conversation {
  const createdAt = new Date("2026-02-03T04:00:00.000Z");
  return { id: newSessionId(), owner: "alice", createdAt, metadata: {}, tip: undefined, resends: false, ...wanted };
}

/** Commits a turn that creates its own session, under its own hint. */
export async function keepSession(store: SessionStore, wanted: Partial<StoredTurn>): Promise<StoredTurn> {
  const turn = makeTurn({ session: newSessionId(), ...wanted });
  assert.equal(await store.commit({ turns: [turn], session: toCreate(turn, `hint of ${turn.id}`) }), true);
  return turn;
}

/** The ids of the newest turns of a session that end with an exchange. */
export async function findByExchange(store: SessionStore, session: string, exchange: string): Promise<string[]> {
  return (await store.findTwins(session, "exchange", [exchange]))?.twins.map(({ id }) => id) ?? [];
}

/** The newest turn with the first of the digests that any has, rather one that nothing follows; and which that is. */
export async function findByDigest(store: SessionStore, session: string, digests: readonly string[]) {
  const found = await store.findTwins(session, "digest", digests);
  const { index, twins } = found ?? { index: undefined, twins: [] };
  const twin = twins.find(({ hasChildren }) => !hasChildren) ?? twins[0];
  return twin && { ...twin, index };
}

/** Prunes until nothing is left to do. */
export async function pruneAll(store: SessionStore, rules: PruneRules): Promise<Pruned & { readonly calls: number }> {
  let [sessions, turns, calls] = [0, 0, 0];
  for (;;) {
    const pruned = await store.prune(rules);
    sessions += pruned.sessions;
    turns += pruned.turns;
    calls += 1;
    if (!pruned.more) return { sessions, turns, calls, more: false };
  }
}

export async function gather(records: AsyncIterable<ArchiveRecord>): Promise<ArchiveRecord[]> {
  const gathered: ArchiveRecord[] = [];
  for await (const record of records) gathered.push(record);
  return gathered;
}

export async function* replay(records: readonly ArchiveRecord[]): AsyncGenerator<ArchiveRecord> {
  yield* records;
}

export function toCreate(turn: StoredTurn, hint: string): SessionMove {
  return { id: turn.session ?? newSessionId(), hint, expectedTip: undefined, otherwise: "refuse", resends: false };
}

export function newSessionId(): string {
  return `conv_${newHex()}${newHex().slice(0, 16)}`;
}

export function toMove(
  turn: StoredTurn,
  expectedTip: string | undefined,
  otherwise: SessionMove["otherwise"],
): SessionMove {
  return { id: turn.session ?? newSessionId(), expectedTip, otherwise, resends: false };
}

export function newDigest(): string {
  return newHex().slice(0, 22);
}

export function newTurnId(): string {
  return `resp_${newHex()}${newHex().slice(0, 16)}`;
}

/** 32 digits. Node keeps a supply of random UUIDs, but not of random bytes. */
function newHex(): string {
  return randomUUID().replaceAll("-", "");
}

export const everyItem: readonly Item[] = [
  { type: "message", role: "system", content: "" },
  { type: "message", role: "user", content: "Grüße, 世界 👋🏽 \0 \u2028 \ud800 end", name: "zoë" },
  {
    type: "message",
    role: "user",
    content: [
      { type: "text", text: "look", extra: { dialect: "chat", fields: { cache: { ttl: 1.5, on: true, off: null } } } },
      { type: "image", url: "https://example.test/a.png", detail: "low" },
      { type: "audio", data: "AAAA", format: "wav" },
      { type: "file", fileId: "file-1", name: "a.pdf" },
      { type: "other", extra: { dialect: "responses", fields: JSON.parse('{"__proto__":{"a":[]},"":""}') } },
    ],
  },
  { type: "reasoning", summary: ["one", ""], text: "", encrypted: "c2VhbA==" },
  { type: "tool-call", kind: "function", callId: "call_1", name: "look_up", arguments: '{ "q" : 1e3 }\n' },
  { type: "tool-output", kind: "function", callId: "call_1", output: [{ type: "text", text: "42" }] },
  { type: "tool-call", kind: "custom", callId: "call_2", name: "run", arguments: "not json {" },
  { type: "tool-output", kind: "custom", callId: "call_2", output: "" },
  { type: "tool-call", kind: "search", callId: "call_3", name: "find", arguments: "{}" },
  {
    type: "tool-output",
    kind: "search",
    callId: "call_3",
    output: "[]",
    tools: [{ type: "function", name: "look_up", parameters: { type: "object" } }],
    extra: { dialect: "responses", fields: { tools: [] } },
  },
  {
    type: "other",
    extra: { dialect: "responses", fields: { type: "additional_tools" } },
    tools: [
      {
        type: "other",
        name: "namespace n",
        group: { name: "n", tools: [{ type: "custom", name: "run" }] },
        extra: { dialect: "responses", fields: { type: "namespace" } },
      },
    ],
    steers: true,
  },
  {
    type: "other",
    extra: { dialect: "responses", fields: { type: "configuration_update" } },
    updates: { reasoningEffort: "low", format: { type: "schema", name: "n", schema: { type: "object" } } },
    steers: true,
  },
  {
    type: "message",
    role: "assistant",
    content: [
      { type: "text", text: "done", logprobs: [{ token: "done", logprob: -0.25 }] },
      { type: "refusal", text: "no" },
    ],
    extra: { dialect: "responses", fields: { phase: "final" } },
  },
  {
    type: "compaction",
    summary: "so far",
    kept: [
      { type: "message", role: "user", content: "go on" },
      { type: "compaction", summary: "before", encrypted: "c2VhbA==" },
    ],
  },
];
