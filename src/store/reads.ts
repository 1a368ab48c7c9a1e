/** All that is read though no turn waits for it, and may take long: lists, what is old, and the lines of an archive, some at a time. */
import type { Item } from "../core/item.ts";
import type { SessionRecord, SessionSummary } from "../core/store.ts";
import { archiveVersion as version, type HeadLine, type SessionLine, type TurnLine } from "./archive.ts";
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

/** How much one step reads, once it is more. */
const stepCharacters = 1024 * 1024;

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

  function toTurnLine(row: PlacedTurn): TurnLine {
    const readOwn = (digest: string) => readText(row.session, digest);
    const input = JSON.parse(row.input) as (Item | null)[];
    return {
      type: "turn",
      id: row.key,
      owner: row.owner,
      session: `conv_${row.name}`,
      parent: row.parent ?? undefined,
      remembers: row.remembers === 1,
      question: row.question ?? undefined,
      digest: row.digest ?? undefined,
      createdAt: toDate(row.created),
      model: row.model,
      input: input.map((item) => item && lengthen(item, readOwn)) as TurnLine["input"],
      answer: JSON.parse(row.answer) as TurnLine["answer"],
      told: row.told === "" ? undefined : (JSON.parse(row.told) as TurnLine["told"]),
      echo: toEcho(row, readText),
    };
  }

  return {
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

    archiveHead(): string {
      const [hintKeys, sealKeys] = [readSecrets(all, "hints"), readSecrets(all, "seals")];
      return toLine({ type: "portico", version, hintKeys: [...hintKeys], sealKeys: [...sealKeys] });
    },

    sessionIds: (): readonly number[] => all<{ readonly id: number }>(cold.sessionIds).map(({ id }) => id),

    sessionToExport({ id }: { readonly id: number }): ExportedSession | undefined {
      const row = one<SessionRow>(cold.exportedSession, id);
      if (row === undefined) return undefined;
      const turns = all<{ readonly n: number }>(cold.turnNumbers, row.n);
      return { line: toLine(toSessionLine(row)), turns: turns.map(({ n }) => n) };
    },

    /** The lines of these turns as far as they fit one step, and how many of them were read. What is gone has none. */
    turnLines({ turns }: { readonly turns: readonly number[] }): {
      readonly text: string;
      readonly taken: number;
    } {
      let text = "";
      let taken = 0;
      for (const n of turns) {
        const row = one<PlacedTurn>(cold.placedTurn, n);
        if (row !== undefined) text += toLine(toTurnLine(row));
        taken += 1;
        if (text.length > stepCharacters) break;
      }
      return { text, taken };
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

/** A session as the tables have it, with its tip's key. */
interface SessionRow {
  readonly id: number;
  readonly n: number;
  readonly name: string;
  readonly owner: string;
  readonly kind: Kind;
  readonly created: number;
  readonly used: number;
  readonly metadata: string;
  readonly shows: number;
  readonly tip: string | null;
}

function toSessionLine({ name, kind, owner, created, used, metadata, shows, tip }: SessionRow): SessionLine {
  const [createdAt, usedAt] = [toDate(created), toDate(used)];
  const known = {
    id: `conv_${name}`,
    owner,
    kind,
    shows: shows === 1,
    tip: tip ?? undefined,
    createdAt,
    usedAt,
  };
  return { type: "session", ...known, metadata: JSON.parse(metadata) as Record<string, string> };
}

const toDate = (at: number): string => new Date(at).toISOString();

const toLine = (line: HeadLine | SessionLine | TurnLine): string => `${JSON.stringify(line)}\n`;
