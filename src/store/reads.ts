/** All that is read though no turn waits for it, and may take long: lists, what is old, and the lines of an archive, some at a time. */
import type { Item } from "../core/item.ts";
import type { Metadata, SessionRecord, SessionSummary } from "../core/store.ts";
import { archiveVersion as version, type Line, type LineOf } from "./archive.ts";
import { cold, type Tables, toNumber } from "./cold.ts";
import { type Kind, lengthen, loadTexts, type ReadTurn, toEcho } from "./rows.ts";
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
  readonly instructions: string | null;
  readonly tools: number | null;
  readonly person: number | null;
}

export function createReads({ one, all }: Tables) {
  async function toTurnLine(row: PlacedTurn): Promise<LineOf<"turn">> {
    const readText = await loadTexts(one, [row]);
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
      instructions: row.instructions ?? undefined,
      tools: row.tools === null ? undefined : row.tools === 1,
      person: row.person === null ? undefined : row.person.toString(16).padStart(13, "0"),
    };
  }

  return {
    owners: async (): Promise<readonly string[]> =>
      (await all<{ readonly owner: string }>(cold.owners)).map(({ owner }) => owner),

    /** Also those who have nothing but turns outside of sessions. */
    allOwners: async (): Promise<readonly string[]> =>
      (await all<{ readonly owner: string }>(cold.allOwners)).map(({ owner }) => owner),

    /** Undefined: `after` is unknown. */
    async sessions({ owner = null, after, limit }: SummaryPage): Promise<readonly SessionSummary[] | undefined> {
      const from = after === undefined ? beforeAll : await one<SessionRow>(cold.session, toNumber(after), after);
      if (from === undefined) return undefined;
      const { updatedAt, n } = from;
      return (await all<SummaryRow>(cold.sessionsBehind, owner, updatedAt, updatedAt, n, limit)).map(toSummary);
    },

    /** Of those that exist. */
    summaries: async ({ names }: { readonly names: readonly string[] }): Promise<readonly SessionSummary[]> =>
      (await each(names, (name) => all<SummaryRow>(cold.summary, toNumber(name), name))).map(toSummary),

    async session({ name }: { readonly name: string }): Promise<FoundSession | undefined> {
      const row = await one<SessionRow>(cold.session, toNumber(name), name);
      return row && toFound(row);
    },

    /** The hidden session of a turn. */
    async sessionAround({ key }: { readonly key: string }): Promise<FoundSession | undefined> {
      const id = toNumber(key);
      const row = await one<SessionRow>(cold.hiddenAround, id, key.padEnd(48, "0"), id, key);
      return row && toFound(row);
    },

    /** From the end to the root. */
    pathNumbers: async ({ n }: { readonly n: number }): Promise<readonly number[]> =>
      (await all<{ readonly n: number }>(cold.pathNumbers, n)).map((row) => row.n),

    turns: ({ turns }: { readonly turns: readonly number[] }): Promise<readonly PlacedTurn[]> =>
      each(turns, (n) => all<PlacedTurn>(cold.placedTurn, n)),

    idleSessions: ({ before }: { readonly before: number }): Promise<readonly UnusedSession[]> =>
      all(cold.idleSessions, before),

    /** What owners have too many: those idle longest. */
    async surplus({ most }: { readonly most: number }): Promise<readonly UnusedSession[]> {
      const crowded = await all<{ readonly owner: string; readonly sessions: number }>(cold.crowdedOwners, most);
      return each(crowded, ({ owner, sessions }) => all<UnusedSession>(cold.idlestSessions, owner, sessions - most));
    },

    async archiveHead(): Promise<string> {
      const { hints: hintKeys, seals: sealKeys } = await readSecrets({ all });
      return toLine({ type: "portico", version, hintKeys, sealKeys });
    },

    sessionIds: async (): Promise<readonly number[]> =>
      (await all<{ readonly id: number }>(cold.sessionIds)).map(({ id }) => id),

    async sessionToExport({ id }: { readonly id: number }): Promise<ExportedSession | undefined> {
      const row = await one<SessionRow>(cold.exportedSession, id);
      if (row === undefined) return undefined;
      const turns = await all<{ readonly n: number }>(cold.turnNumbers, row.n);
      return { line: toLine(toSessionLine(row)), turns: turns.map(({ n }) => n) };
    },

    /** Undefined: it is gone. */
    async turnLine({ n }: { readonly n: number }): Promise<string | undefined> {
      const row = await one<PlacedTurn>(cold.placedTurn, n);
      return row && toLine(await toTurnLine(row));
    },
  };
}

/** One after the other, for they share a connection. */
async function each<Given, Row>(list: readonly Given[], read: (given: Given) => Promise<readonly Row[]>) {
  const rows: Row[] = [];
  for (const given of list) rows.push(...(await read(given)));
  return rows;
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
