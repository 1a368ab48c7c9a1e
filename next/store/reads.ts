/** All that is read though no turn waits for it, as functions of one connection: a thread of its own runs them. */
import type { DatabaseSync } from "node:sqlite";
import type { Item } from "../core/item.ts";
import type { SessionRecord, SessionSummary } from "../core/store.ts";
import type { UnusedSession } from "./aging.ts";
import { cold } from "./cold.ts";
import { createExport } from "./export.ts";
import { createCache } from "./prepared.ts";
import type { ArchivedTurn } from "./archive.ts";
import { toNumber } from "./schema.ts";

export type Reads = ReturnType<typeof createReads>;

/** A session as an operator finds it, and its number. */
export interface FoundSession extends SessionRecord {
  readonly n: number;
  readonly name: string;
}

interface FoundTurn {
  readonly session: FoundSession;
  readonly turn: number | undefined;
}

interface SummaryPage {
  readonly owner: string | undefined;
  /** A session's name or, of a hidden one, its first turn's key. */
  readonly after: string | undefined;
  readonly limit: number;
}

export function createReads(database: DatabaseSync) {
  const prepare = createCache(database);

  return {
    ...createExport(prepare),

    owners: (): readonly string[] =>
      prepare(cold.owners)
        .all()
        .map((row) => String(row["owner"])),

    /** Undefined: `after` is unknown. */
    sessions({ owner, after, limit }: SummaryPage): readonly SessionSummary[] | undefined {
      const from =
        after === undefined ? beforeAll : (prepare(cold.place).get(toNumber(after), after) as Place | undefined);
      if (from === undefined) return undefined;
      const { used, n } = from;
      if (owner === undefined) return summariesOf(prepare(cold.sessionsBehind).all(used, used, n, limit));
      return summariesOf(prepare(cold.sessionsOfOwnerBehind).all(used, used, n, owner, limit));
    },

    hiddenSessions({ owner, after, limit }: SummaryPage): readonly SessionSummary[] {
      const newest = prepare(cold.newestTurn).get() as { readonly n: number | null };
      const below = after === undefined ? (newest.n ?? 0) + 1 : toNumber(after);
      if (owner === undefined) return summariesOf(prepare(cold.hiddenBehind).all(below, limit));
      return summariesOf(prepare(cold.hiddenOfOwnerBehind).all(below, owner, limit));
    },

    /** Of those that exist. */
    summaries: ({ names }: { readonly names: readonly string[] }): readonly SessionSummary[] =>
      names.flatMap((name) => summariesOf(prepare(cold.summary).all(toNumber(name), name))),

    session({ name }: { readonly name: string }): FoundSession | undefined {
      return toFound(prepare(cold.session).get(toNumber(name), name));
    },

    /** The session of a turn; once its first turn is gone that still names a hidden one. */
    sessionAround({ key }: { readonly key: string }): FoundTurn | undefined {
      const row = prepare(cold.sessionAround).get(toNumber(key), key);
      const session = toFound(row ?? prepare(cold.hiddenSession).get(toNumber(key), key.padEnd(48, "0")));
      return session && { session, turn: row?.["turn"] as number | undefined };
    },

    /** From the end to the root. */
    pathNumbers: ({ n }: { readonly n: number }): readonly number[] => toNumbers(prepare(cold.pathNumbers).all(n)),
    /** Last first. */
    below: ({ n }: { readonly n: number }): readonly number[] => toNumbers(prepare(cold.below).all(n)),

    turns: ({ turns }: { readonly turns: readonly number[] }): readonly ArchivedTurn[] =>
      turns.flatMap((n) => prepare(cold.archivedTurn).all(n) as unknown as readonly ArchivedTurn[]),

    idleSessions: ({ before }: { readonly before: number }): readonly UnusedSession[] =>
      prepare(cold.idleSessions).all(before) as unknown as readonly UnusedSession[],

    /** What owners have too many: those idle longest. */
    surplus({ most }: { readonly most: number }): readonly UnusedSession[] {
      const crowded = prepare(cold.crowdedOwners).all(most) as unknown as readonly {
        owner: string;
        sessions: number;
      }[];
      return crowded.flatMap(
        ({ owner, sessions }) => prepare(cold.idlestSessions).all(owner, sessions - most) as unknown as UnusedSession[],
      );
    },
  };
}

const summariesOf = (rows: unknown): readonly SessionSummary[] => (rows as readonly SummaryRow[]).map(toSummary);

interface Place {
  readonly used: number;
  readonly n: number;
}

const beforeAll: Place = { used: Number.MAX_SAFE_INTEGER, n: 0 };

interface SummaryRow {
  readonly name: string;
  readonly kind: string;
  readonly owner: string;
  readonly created: number;
  readonly used: number;
  readonly turns: number;
  readonly input: string | null;
}

function toSummary({ name, kind, owner, created, used, turns, input }: SummaryRow): SessionSummary {
  const id = kind === "hidden" ? name.slice(0, keyDigits) : `conv_${name}`;
  return { id, owner, createdAt: created, updatedAt: used, turns, beginning: toBeginning(input) };
}

/** A hidden session's name is its first turn's key, filled up. */
const keyDigits = 25;

const beginningCharacters = 120;

/** What a user said first, in one line; in a list of ids alone nobody recognises a session. */
function toBeginning(input: string | null): string | undefined {
  const items = input === null ? [] : (JSON.parse(input) as readonly (Item | null)[]);
  const asked = items.find((item) => item?.type === "message" && item.role === "user");
  if (asked?.type !== "message") return undefined;
  const { content } = asked;
  const text = typeof content === "string" ? content : (content.find((part) => part.type === "text")?.text ?? "");
  const line = text
    .slice(0, 4 * beginningCharacters)
    .trim()
    .replaceAll(/\s+/g, " ");
  if (line.length <= beginningCharacters) return line === "" ? undefined : line;
  return `${line.slice(0, beginningCharacters).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

interface RecordRow {
  readonly n: number;
  readonly name: string;
  readonly kind: string;
  readonly owner: string;
  readonly created: number;
  readonly used: number;
  readonly metadata: string;
  readonly tip: string | null;
}

function toFound(found: unknown): FoundSession | undefined {
  if (found === undefined) return undefined;
  const { n, name, kind, owner, created, used, metadata, tip } = found as RecordRow;
  return {
    n,
    name,
    id: `conv_${name}`,
    isHidden: kind === "hidden",
    owner,
    createdAt: created,
    updatedAt: used,
    metadata: JSON.parse(metadata) as Readonly<Record<string, string>>,
    tip: tip ?? undefined,
  };
}

function toNumbers(rows: unknown): readonly number[] {
  return (rows as readonly { readonly n: number }[]).map(({ n }) => n);
}
