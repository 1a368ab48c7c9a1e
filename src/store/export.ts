/** Writes what is stored as lines of an archive, some at a time: each session, then its turns. */
import type { Item } from "../core/item.ts";
import type { HeadLine, SessionLine, TurnLine } from "./archive.ts";
import { cold } from "./cold.ts";
import type { Tables } from "./prepared.ts";
import { lengthen, type NewSession, type ReadText, type ReadTurn, toEcho } from "./rows.ts";
import { archiveVersion as version, toNumber } from "./schema.ts";
import { readSecrets } from "./secrets.ts";

const stepSessions = 100;
/** How much one step reads, once it is more. */
const stepCharacters = 1024 * 1024;

export interface ExportedSession {
  readonly id: number;
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

export function createExport({ one, all }: Tables, readText: ReadText) {
  function toExported(row: SessionRow): ExportedSession {
    const turns = all<{ readonly n: number }>(cold.turnNumbers, row.n);
    return { id: row.id, line: toLine(toSessionLine(row)), turns: turns.map(({ n }) => n) };
  }

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
    archiveHead(): string {
      const [hintKeys, sealKeys] = [readSecrets(all, "hints"), readSecrets(all, "seals")];
      return toLine({ type: "portico", version, hintKeys: [...hintKeys], sealKeys: [...sealKeys] });
    },

    sessionsToExport: ({ after }: { readonly after: number }): readonly ExportedSession[] =>
      all<SessionRow>(cold.sessionsAfter, after, stepSessions).map(toExported),

    sessionToExport({ name }: { readonly name: string }): ExportedSession | undefined {
      const row = one<SessionRow>(cold.session, toNumber(name), name);
      return row && toExported(row);
    },

    /** The lines of these turns as far as they fit one step, and how many of them were read. What is gone has none. */
    turnLines({ turns }: { readonly turns: readonly number[] }): { readonly text: string; readonly taken: number } {
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

/** A session as the tables have it, with its tip's key. */
export interface SessionRow extends NewSession {
  readonly n: number;
  readonly used: number;
  readonly metadata: string;
  readonly shows: number;
  readonly tip: string | null;
}

function toSessionLine({ name, kind, owner, created, used, metadata, shows, tip }: SessionRow): SessionLine {
  const [createdAt, usedAt] = [toDate(created), toDate(used)];
  const known = { id: `conv_${name}`, owner, kind, shows: shows === 1, tip: tip ?? undefined, createdAt, usedAt };
  return { type: "session", ...known, metadata: JSON.parse(metadata) as Record<string, string> };
}

const toDate = (at: number): string => new Date(at).toISOString();

const toLine = (line: HeadLine | SessionLine | TurnLine): string => `${JSON.stringify(line)}\n`;
