/** What a turn is in the tables, and back: texts of JSON, of which long ones that come again are kept once. */
import { hash } from "node:crypto";
import type { Delta } from "../core/event.ts";
import type { Commit, Recording, StoredRecording, StoredTurn } from "../core/store.ts";
import { GatewayError, isErrorCode } from "../core/errors.ts";
import { isInstruction, type Item } from "../core/item.ts";
import type { Node } from "../core/place.ts";
import type { Answer } from "../core/turn.ts";
import { cold } from "./cold.ts";
import type { Prepare } from "./prepared.ts";
import { toNumber } from "./schema.ts";

/** A turn as the writer gets it: plain values, in the order of its statement. */
export interface TurnRow {
  readonly session: SessionRow;
  readonly values: readonly (string | number | null)[];
  readonly calls: readonly string[];
  readonly texts: readonly (readonly [digest: string, text: string])[];
  /** Of a turn that outlives its caller. */
  readonly record?: RecordRow | undefined;
}

/** In the order of its statement, behind the turn and its session. */
export type RecordRow = readonly (string | number | null)[];

export interface NewSession {
  readonly id: number;
  readonly name: string;
  readonly owner: string;
  readonly kind: Kind;
  readonly created: number;
}

/** What a turn does to its session. */
export interface SessionRow extends NewSession {
  readonly turn: number;
  readonly leads: boolean;
  readonly tip: number | null;
  readonly learns: boolean;
}

/** `hinted` sessions are made by a request, `named` ones as conversations, `hidden` ones for a single turn and what follows it. */
export type Kind = "hidden" | "hinted" | "named";

export function toRow(commit: Commit, nameKey: NameKey = (key) => key): TurnRow {
  const { key, parent, answer, marks, isLoose, session } = commit;
  const n = toNumber(key);
  const texts: [string, string][] = [];
  const name = session === undefined ? key.padEnd(48, "0") : session.slice("conv_".length);
  // An imported one may have nulls where items were deleted.
  const calls = answer.items.flatMap((item) => (item?.type === "tool-call" ? [item.callId] : []));
  const { items, error, ...told } = answer;
  return {
    session: {
      id: toNumber(name),
      name,
      owner: commit.owner,
      kind: session === undefined ? "hidden" : "hinted",
      created: commit.createdAt,
      turn: n,
      leads: commit.leads && !isLoose,
      tip: commit.tip ?? null,
      learns: commit.learns,
    },
    values: [
      n,
      key,
      parent?.turn ?? null,
      (parent?.depth ?? 0) + 1,
      isLoose ? null : marks.question,
      isLoose ? null : marks.digest,
      commit.remembers ? 1 : 0,
      commit.model,
      commit.createdAt,
      JSON.stringify(commit.input.map((item) => shorten(item, texts))),
      JSON.stringify(items),
      JSON.stringify(error === undefined ? told : { ...told, error: toFailure(error) }),
      commit.echo === undefined ? null : shortText(commit.echo, texts),
    ],
    calls: isLoose ? [] : calls,
    texts,
    record: commit.record && toRecordRow(commit.record, answer, nameKey),
  };
}

/** The name that stands for an owner's key. */
export type NameKey = (key: string) => string;

/** A key of a turn that failed is free again: its repetition is a new try. */
function toRecordRow(record: Recording, { status }: Answer, nameKey: NameKey): RecordRow {
  const { isBackground, isUnnamed, told, contextItems, idempotency, deltas } = record;
  const keyed = status === "failed" ? undefined : idempotency;
  return [
    isBackground ? 1 : 0,
    isUnnamed ? 1 : 0,
    told,
    contextItems,
    keyed === undefined ? null : nameKey(keyed.key),
    keyed?.fingerprint ?? null,
    JSON.stringify(deltas),
  ];
}

interface RecordRead {
  readonly background: number | null;
  readonly placed: string | null;
  readonly items: number | null;
  readonly log: string | null;
}

function toRecording({ background, placed, items, log }: RecordRead): StoredRecording | undefined {
  if (background === null || placed === null) return undefined;
  const deltas = log === null ? undefined : (JSON.parse(log) as Delta[]);
  return { isBackground: background === 1, told: placed, contextItems: items ?? 0, deltas };
}

/** One that was running when its process ended. */
export function toInterrupted(row: RunningRead): StoredTurn {
  const message = "The gateway was stopped while this turn ran. Send the request again.";
  const { key, session, model, created: createdAt, echo } = row;
  return {
    key,
    session: session ?? "",
    isHidden: session === null,
    model,
    createdAt,
    input: [],
    answer: [],
    told: {
      status: "failed",
      finish: "stop",
      notes: {},
      endedAt: createdAt,
      error: new GatewayError("interrupted", message),
    },
    echo: echo ?? undefined,
    record: { isBackground: true, told: "new", contextItems: 0, deltas: undefined },
  };
}

export interface RunningRead {
  readonly key: string;
  readonly session: string | null;
  readonly model: string;
  readonly created: number;
  readonly echo: string | null;
}

/** From this length on a text that may come again is kept beside the turn. */
const longCharacters = 1_000;
const mark = "\u0001";

function shortText(text: string, texts: [string, string][]): string {
  if (text.length < longCharacters) return text;
  const digest = hash("sha1", text, "base64url");
  texts.push([digest, text]);
  return mark + digest;
}

function shorten(item: Item, texts: [string, string][]): Item {
  if (item?.type !== "message" || !isInstruction(item) || typeof item.content !== "string") return item;
  return item.content.length < longCharacters ? item : { ...item, content: shortText(item.content, texts) };
}

/** What a read needs for texts that are kept beside the turn. */
export type ReadText = (session: number, digest: string) => string | undefined;

export function createReadText(prepare: Prepare): ReadText {
  return (session, digest) => prepare(cold.text).get(session, digest)?.["text"] as string | undefined;
}

/** Within one session, for as long as it is held. */
export function createReadOnce(read: ReadText): ReadText {
  const known = new Map<string, string | undefined>();
  return (session, digest) => {
    if (!known.has(digest)) known.set(digest, read(session, digest));
    return known.get(digest);
  };
}

/** The digests of the texts that are kept beside a turn, by its own. */
export function digestsIn(input: string, echo: string | null): readonly string[] {
  const found = [...input.matchAll(/"\\u0001([\w-]{27})"/g)].map(([, digest = ""]) => digest);
  return echo?.startsWith(mark) === true ? [...found, echo.slice(1)] : found;
}

export interface ReadTurn extends Partial<RecordRead> {
  readonly key: string;
  readonly session: number;
  readonly name: string;
  readonly kind: Kind;
  readonly model: string;
  readonly created: number;
  readonly input: string;
  readonly answer: string;
  readonly told: string;
  readonly echo: string | null;
}

/** Where an item was deleted a null stands, so that the others keep their numbers, which are in their ids. */
export function toItems(text: string): readonly Item[] {
  const items = JSON.parse(text) as (Item | null)[];
  return items.includes(null) ? items.filter((item) => item !== null) : (items as Item[]);
}

/** What a caller sent has ids only once somebody asks for it: they are made of the turn's key and the item's number. */
export function toInput(row: Pick<ReadTurn, "key" | "session" | "input">, read: ReadText): readonly Item[] {
  return toPlaces(row, read).filter((item) => item !== null);
}

export function toPlaces(row: Pick<ReadTurn, "key" | "session" | "input">, read: ReadText): readonly (Item | null)[] {
  const items = JSON.parse(row.input) as (Item | null)[];
  const readOwn = (digest: string) => read(row.session, digest);
  for (const [index, item] of items.entries()) {
    if (item === null || item.type === "reference") continue;
    items[index] = Object.assign(lengthen(item, readOwn), { id: inputId(item, row.key, index) });
  }
  return items;
}

export function inputId({ type }: Item, key: string, index: number): string {
  return `${prefixes[type]}_${key}_i${index}`;
}

const prefixes: Record<Item["type"], string> = {
  message: "msg",
  reasoning: "rs",
  "tool-call": "fc",
  "tool-output": "fco",
  reference: "ref",
  compaction: "cmp",
  other: "item",
};

export function lengthen(item: Item, read: (digest: string) => string | undefined): Item {
  if (item.type !== "message" || typeof item.content !== "string" || !item.content.startsWith(mark)) return item;
  // A caller's own text may begin like that.
  return { ...item, content: read(item.content.slice(1)) ?? item.content };
}

export function toTurn(row: ReadTurn, read: ReadText): StoredTurn {
  const { key, name, kind, model, created: createdAt } = row;
  // Of what was deleted nothing is left to tell.
  const { error, ...told } = JSON.parse(row.told || "{}") as Omit<Answer, "items" | "error"> & {
    readonly error?: Failure;
  };
  const { background = null, placed = null, items = null, log = null } = row;
  const record = toRecording({ background, placed, items, log });
  return {
    ...(record && { record }),
    key,
    session: `conv_${name}`,
    isHidden: kind === "hidden",
    model,
    createdAt,
    input: toInput(row, read),
    answer: toItems(row.answer),
    told: error === undefined ? told : { ...told, error: toError(error) },
    echo: toEcho(row, read),
  };
}

export function toEcho({ session, echo }: Pick<ReadTurn, "session" | "echo">, read: ReadText): string | undefined {
  if (echo === null) return undefined;
  return echo.startsWith(mark) ? read(session, echo.slice(1)) : echo;
}

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly wireCode: string;
}

function toFailure({ code, message, param, wireCode }: GatewayError): Failure {
  return { code, message, param, wireCode };
}

function toError({ code, message, param, wireCode }: Failure): GatewayError {
  const known = isErrorCode(code) ? code : "internal_error";
  return new GatewayError(known, message, { param: param ?? undefined, wireCode });
}

export interface NodeRow {
  readonly n: number;
  readonly digest: string | null;
  readonly remembers: number;
  readonly depth: number;
  readonly followed?: number;
}

export function toNode({ n, digest, remembers, depth, followed }: NodeRow): Node {
  return { turn: n, digest: digest ?? "", remembers: remembers === 1, depth, hasFollowers: followed === 1 };
}
