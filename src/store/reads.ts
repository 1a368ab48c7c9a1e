/** All that is read though no turn waits for it, and may take long: lists, what is old, and the lines of an archive, some at a time. */
import type { Item } from "../core/item.ts";
import type { Metadata, SessionRecord, SessionSummary } from "../core/store.ts";
import { archiveVersion as version, type Line, type LineOf } from "./archive.ts";
import { cold, createTables, type Prepare, toNumber } from "./cold.ts";
import { createReadText, type Kind, lengthen, type ReadTurn, toEcho } from "./rows.ts";
import { readSecrets } from "./secrets.ts";

export type Reads = ReturnType<typeof createReads>;

/** A session as an operator finds it, and its number. */
export interface FoundSession extends SessionRecord {
  readonly n: number;
  readonly name: string;
}

/** As it was when it was found: one that was used since stays. */
export interface UnusedSession {
  readonly n: number;
  readonly used: number;
}

interface SummaryPage {
  readonly owner?: string | null | undefined;
  /** A session's name or, of a hidden one, its first turn's key. */
  readonly after: string | undefined;
  readonly limit: number;
}

interface ExportedSession {
  readonly line: string;
  /** The numbers of its turns, each after the one that it follows. */
  readonly turns: readonly number[];
}

/** A turn as the tables have it, with its place and its owner. */
export interface PlacedTurn extends ReadTurn {
  readonly owner: string;
  readonly parent: string | null;
  readonly question: string | null;
  readonly digest: string | null;
  readonly remembers: number;
}

export function createReads(prepare: Prepare) {
  const { one, all } = createTables(prepare);
  const readText = createReadText(prepare);

  function toTurnLine(row: PlacedTurn): LineOf<"turn"> {
    const readOwn = (digest: string) => readText(row.session, digest);
    const input = JSON.parse(row.input) as (Item | null)[];
    return {
      type: "turn",
      id: row.key,
      parent: row.parent ?? undefined,
      remembers: row.remembers === 1,
      question: row.question ?? undefined,
      digest: row.digest ?? undefined,
      createdAt: toDate(row.created),
      model: row.model,
      input: input.map((item) => item && lengthen(item, readOwn)),
      answer: JSON.parse(row.answer) as (Item | null)[],
      told: row.told === "" ? undefined : (JSON.parse(row.told) as LineOf<"turn">["told"]),
      echo: toEcho(row, readText),
    };
  }

  return {
    owners: (): readonly string[] => all<{ readonly owner: string }>(cold.owners).map(({ owner }) => owner),

    /** Undefined: `after` is unknown. */
    sessions({ owner = null, after, limit }: SummaryPage): readonly SessionSummary[] | undefined {
      const from = after === undefined ? beforeAll : one<SessionRow>(cold.session, toNumber(after), after);
      if (from === undefined) return undefined;
      return all<SummaryRow>(cold.sessionsBehind, owner, from.updatedAt, from.updatedAt, from.n, limit).map(toSummary);
    },

    /** Of those that exist. */
    summaries: ({ names }: { readonly names: readonly string[] }): readonly SessionSummary[] =>
      names.flatMap((name) => all<SummaryRow>(cold.summary, toNumber(name), name).map(toSummary)),

    session({ name }: { readonly name: string }): FoundSession | undefined {
      const row = one<SessionRow>(cold.session, toNumber(name), name);
      return row && toFound(row);
    },

    /** The hidden session of a turn. */
    sessionAround({ key }: { readonly key: string }): FoundSession | undefined {
      const id = toNumber(key);
      const row = one<SessionRow>(cold.hiddenAround, id, key.padEnd(48, "0"), id, key);
      return row && toFound(row);
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

    archiveHead(): string {
      return toLine({
        type: "portico",
        version,
        hintKeys: readSecrets(all, "hints"),
        sealKeys: readSecrets(all, "seals"),
      });
    },

    sessionIds: (): readonly number[] => all<{ readonly id: number }>(cold.sessionIds).map(({ id }) => id),

    sessionToExport({ id }: { readonly id: number }): ExportedSession | undefined {
      const row = one<SessionRow>(cold.exportedSession, id);
      if (row === undefined) return undefined;
      const turns = all<{ readonly n: number }>(cold.turnNumbers, row.n);
      return { line: toLine(toSessionLine(row)), turns: turns.map(({ n }) => n) };
    },

    /** Undefined: it is gone. */
    turnLine({ n }: { readonly n: number }): string | undefined {
      const row = one<PlacedTurn>(cold.placedTurn, n);
      return row && toLine(toTurnLine(row));
    },
  };
}

const beforeAll = { updatedAt: Number.MAX_SAFE_INTEGER, n: 0 };

interface SummaryRow extends Omit<SessionSummary, "id" | "beginning"> {
  readonly name: string;
  readonly kind: Kind;
  readonly input: string | null;
}

function toSummary({ name, kind, input, ...row }: SummaryRow): SessionSummary {
  return { id: kind === "hidden" ? name.slice(0, keyDigits) : `conv_${name}`, ...row, beginning: toBeginning(input) };
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

/** A session as the tables have it, with its tip's key. */
interface SessionRow extends Pick<FoundSession, "n" | "name" | "owner" | "createdAt" | "updatedAt"> {
  readonly kind: Kind;
  readonly metadata: string;
  readonly shows: number;
  readonly tip: string | null;
}

function toFound({ n, name, kind, owner, createdAt, updatedAt, metadata, tip }: SessionRow): FoundSession {
  return {
    n,
    name,
    id: `conv_${name}`,
    isHidden: kind === "hidden",
    owner,
    createdAt,
    updatedAt,
    metadata: JSON.parse(metadata) as Metadata,
    tip: tip ?? undefined,
  };
}

function toSessionLine(row: SessionRow): LineOf<"session"> {
  const { id, owner, tip, metadata, createdAt, updatedAt } = toFound(row);
  const times = { createdAt: toDate(createdAt), usedAt: toDate(updatedAt) };
  return { type: "session", id, owner, kind: row.kind, shows: row.shows === 1, tip, ...times, metadata };
}

const toDate = (at: number): string => new Date(at).toISOString();

const toLine = (line: Line): string => `${JSON.stringify(line)}\n`;
