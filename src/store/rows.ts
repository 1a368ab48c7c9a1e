/** What a turn is in the tables, and back: texts of JSON, of which long ones that come again are kept once. */
import { hash } from "node:crypto";
import type { Delta } from "../core/event.ts";
import type { Commit, Recording, RunningTurn, StoredRecording, StoredTurn } from "../core/store.ts";
import { GatewayError, isErrorCode } from "../core/errors.ts";
import { inputId, isInstruction, type Item } from "../core/item.ts";
import type { Step } from "../core/pair.ts";
import type { Node } from "../core/place.ts";
import type { Answer } from "../core/turn.ts";
import type { Secrets } from "./secrets.ts";
import { cold, type Prepare, type Tables, toNumber, type Value } from "./cold.ts";

/** A turn as the writer gets it: plain values in lists, for to copy objects to another thread costs twice as much. */
export interface TurnRow {
  readonly session: NewSession;
  /** In the order of the statement that adds it. */
  readonly values: readonly Value[];
  /** The tip that was seen, if the turn is to take its place; of one that leads nowhere a number that no tip has. */
  readonly tip: number | null;
  readonly learns: boolean;
  /** Set if this root takes the tip from another program's root: the hash of its instructions. */
  readonly takesTipAs?: string | undefined;
  readonly calls?: readonly string[];
  readonly texts?: readonly (readonly [digest: string, text: string])[];
  /** The columns of its record, if the turn outlives its caller. */
  readonly record?: readonly Value[];
  /** It ends, and outlives its caller: it is kept only if this process may still end it. */
  readonly outlives?: true;
}

export type NewSession = readonly [id: number, name: string, owner: string, kind: Kind, created: number];

/** `hinted` sessions are made by a request, `named` ones as conversations, `hidden` ones for a single turn and what follows it. */
export type Kind = "hidden" | "hinted" | "named";

export const noTip = -1;

/** Turns the names that callers give into stored ones. */
type Naming = Pick<Secrets, "nameKey" | "personOf">;

export function toRow(commit: Commit, naming: Naming): TurnRow {
  const { owner, key, parent, answer, marks, isLoose, session, createdAt, record, program, userHint } = commit;
  const texts: [string, string][] = [];
  const name = session === undefined ? key.padEnd(48, "0") : session.slice("conv_".length);
  const { items, error, ...told } = answer;
  const calls = isLoose ? [] : callsIn(items);
  return {
    session: [toNumber(name), name, owner, session === undefined ? "hidden" : "hinted", createdAt],
    values: [
      toNumber(key),
      key,
      parent?.turn ?? null,
      (parent?.depth ?? 0) + 1,
      isLoose ? null : marks.question,
      isLoose ? null : marks.digest,
      commit.remembers ? 1 : 0,
      commit.model,
      createdAt,
      JSON.stringify(commit.input.map((item) => shorten(item, texts))),
      JSON.stringify(items),
      JSON.stringify(error === undefined ? told : { ...told, error: toFailure(error) }),
      commit.echo === undefined ? null : shortText(commit.echo, texts),
      program?.instructions ?? null,
      program === undefined ? null : Number(program.offersTools),
      userHint === undefined ? null : naming.personOf(owner, userHint),
    ],
    tip: commit.leads && !isLoose ? (commit.tip ?? null) : noTip,
    learns: commit.learns,
    ...(commit.takesTip === true && { takesTipAs: program?.instructions }),
    ...(calls.length > 0 && { calls }),
    ...(texts.length > 0 && { texts }),
    ...(record && { record: toRecordRow(record, answer, (used) => naming.nameKey(owner, used)), outlives: true }),
  };
}

/** An imported answer may have nulls where items were deleted. */
export function callsIn(items: readonly (Item | null)[]): readonly string[] {
  return items.flatMap((item) => (item?.type === "tool-call" ? [item.callId] : []));
}

/** A key of a turn that failed is free again: its repetition is a new try. */
function toRecordRow(record: Recording, { status }: Answer, nameKey: (key: string) => string): readonly Value[] {
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

/** A turn that begins is kept as what it is if its process ends first. */
export function toInterrupted(turn: RunningTurn, naming: Naming): TurnRow {
  const message = "The gateway was stopped while this turn ran. Send the request again.";
  const error = new GatewayError("interrupted", message);
  const row = toRow(
    {
      ...turn,
      parent: undefined,
      marks: { question: "", digest: "" },
      remembers: false,
      input: [],
      answer: { status: "failed", finish: "stop", items: [], notes: {}, endedAt: turn.createdAt, error },
      leads: false,
      tip: undefined,
      learns: false,
      isLoose: true,
    },
    naming,
  );
  return { ...row, record: [1, 0, "new", 0, null, null, null] };
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

export type WithTexts = Pick<ReadTurn, "session" | "input"> & Partial<Pick<ReadTurn, "echo">>;

/** The texts that these turns have beside them. */
export async function loadTexts(one: Tables["one"], rows: readonly WithTexts[]): Promise<ReadText> {
  const texts = new Map<string, string | undefined>();
  for (const { session, input, echo = null } of rows) {
    for (const digest of digestsIn(input, echo)) {
      const name = `${session} ${digest}`;
      if (!texts.has(name)) texts.set(name, (await one<{ readonly text: string }>(cold.text, session, digest))?.text);
    }
  }
  return (session, digest) => texts.get(`${session} ${digest}`);
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
function toInput(row: Pick<ReadTurn, "key" | "session" | "input">, read: ReadText): readonly Item[] {
  return toPlaces(row, read).filter((item) => item !== null);
}

export interface PathRow extends Pick<ReadTurn, "key" | "session" | "input" | "answer"> {
  readonly depth: number;
}

/** From the root on. */
export function toPath(rows: readonly PathRow[], read: ReadText): readonly Step[] {
  const down = rows.toSorted((one, other) => one.depth - other.depth);
  return down.map((row) => ({ input: toInput(row, read), answer: toItems(row.answer) }));
}

export interface KeyedRow extends ReadTurn {
  readonly fingerprint: string;
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

export function lengthen(item: Item, read: (digest: string) => string | undefined): Item {
  if (item.type !== "message" || typeof item.content !== "string" || !item.content.startsWith(mark)) return item;
  // A caller's own text may begin like that.
  return { ...item, content: read(item.content.slice(1)) ?? item.content };
}

export function toTurn(row: ReadTurn, read: ReadText): StoredTurn {
  const { key, name, kind, model, created: createdAt } = row;
  // Of what was deleted nothing is left to tell.
  const { error, ...told } = JSON.parse(row.told || "{}") as Told;
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

/** The end of a turn as its row has it. */
export type Told = Omit<Answer, "items" | "error"> & { readonly error?: Failure | undefined };

export interface Failure {
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

/** What a statement tells of a node, as a list. */
export type NodeRow = readonly [n: number, digest: string | null, remembers: number, depth: number, followed: number];

export function toNode([turn, digest, remembers, depth, followed]: NodeRow): Node {
  return {
    turn,
    digest: digest ?? "",
    remembers: remembers === 1,
    depth,
    hasFollowers: followed === 1,
  };
}

/** A tip, with the program that made it if it is a root. */
export function toTip(node: Node, instructions: string | null, tools: number | null): Node {
  if (tools === null) return node;
  return { ...node, program: { instructions: instructions ?? undefined, offersTools: tools === 1 } };
}
