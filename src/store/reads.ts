/** All that is read though no turn waits for it, as functions of one connection: a thread of its own runs them. */
import type { DatabaseSync } from "node:sqlite";
import type { Item } from "../core/item.ts";
import type { SessionRecord, SessionSummary } from "../core/store.ts";
import type { UnusedSession } from "./aging.ts";
import { cold } from "./cold.ts";
import { createExport, type PlacedTurn, type SessionRow } from "./export.ts";
import { createCache, createTables } from "./prepared.ts";
import { createReadText } from "./rows.ts";
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
  readonly owner?: string | null | undefined;
  /** A session's name or, of a hidden one, its first turn's key. */
  readonly after: string | undefined;
  readonly limit: number;
}

export function createReads(database: DatabaseSync) {
  const prepare = createCache(database);
  const tables = createTables(prepare);
  const { one, all } = tables;

  return {
    ...createExport(tables, createReadText(prepare)),

    owners: (): readonly string[] => all<{ readonly owner: string }>(cold.owners).map(({ owner }) => owner),

    /** Undefined: `after` is unknown. */
    sessions({ owner = null, after, limit }: SummaryPage): readonly SessionSummary[] | undefined {
      const from = after === undefined ? beforeAll : one<SessionRow>(cold.session, toNumber(after), after);
      if (from === undefined) return undefined;
      return all<SummaryRow>(cold.sessionsBehind, owner, from.used, from.used, from.n, limit).map(toSummary);
    },

    hiddenSessions({ owner = null, after, limit }: SummaryPage): readonly SessionSummary[] {
      const newest = one<{ readonly n: number | null }>(cold.newestTurn)?.n ?? 0;
      const below = after === undefined ? newest + 1 : toNumber(after);
      return all<SummaryRow>(cold.hiddenBehind, owner, below, limit).map(toSummary);
    },

    /** Of those that exist. */
    summaries: ({ names }: { readonly names: readonly string[] }): readonly SessionSummary[] =>
      names.flatMap((name) => all<SummaryRow>(cold.summary, toNumber(name), name).map(toSummary)),

    session({ name }: { readonly name: string }): FoundSession | undefined {
      const row = one<SessionRow>(cold.session, toNumber(name), name);
      return row && toFound(row);
    },

    /** The session of a turn; once its first turn is gone that still names a hidden one. */
    sessionAround({ key }: { readonly key: string }): FoundTurn | undefined {
      const id = toNumber(key);
      const around = one<SessionRow & { readonly turn: number }>(cold.sessionAround, id, key);
      const row = around ?? one<SessionRow>(cold.session, id, key.padEnd(48, "0"));
      return row && { session: toFound(row), turn: around?.turn };
    },

    /** From the end to the root. */
    pathNumbers: ({ n }: { readonly n: number }): readonly number[] =>
      all<{ readonly n: number }>(cold.pathNumbers, n).map((row) => row.n),

    turns: ({ turns }: { readonly turns: readonly number[] }): readonly PlacedTurn[] =>
      turns.flatMap((n) => all<PlacedTurn>(cold.placedTurn, n)),

    idleSessions: ({ before }: { readonly before: number }): readonly UnusedSession[] => all(cold.idleSessions, before),

    /** What owners have too many: those idle longest. */
    surplus({ most }: { readonly most: number }): readonly UnusedSession[] {
      const crowded = all<{ readonly owner: string; readonly sessions: number }>(cold.crowdedOwners, most);
      return crowded.flatMap(({ owner, sessions }) => all<UnusedSession>(cold.idlestSessions, owner, sessions - most));
    },
  };
}

const beforeAll = { used: Number.MAX_SAFE_INTEGER, n: 0 };

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

function toFound({ n, name, kind, owner, created, used, metadata, tip }: SessionRow): FoundSession {
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
