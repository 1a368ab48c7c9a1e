/** Writes what is stored as lines of an archive, some at a time: each session, then its turns. */
import type { Item } from "../core/item.ts";
import type { HeadLine, SessionLine, TurnLine } from "./archive.ts";
import { cold } from "./cold.ts";
import type { Prepare } from "./prepared.ts";
import { createReadText, type Kind, lengthen, type ReadTurn, toEcho } from "./rows.ts";
import { toNumber } from "./schema.ts";
import { readSecrets } from "./secrets.ts";

/** Of the lines. The former engine wrote version 1. */
export const version = 2;

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

export function createExport(prepare: Prepare) {
  const readText = createReadText(prepare);

  function toExported(row: SessionRow): ExportedSession {
    const turns = prepare(cold.turnNumbers).all(row.n) as unknown as readonly { readonly n: number }[];
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
      const [hintKeys, sealKeys] = [readSecrets(prepare, "hints"), readSecrets(prepare, "seals")];
      return toLine({ type: "portico", version, hintKeys: [...hintKeys], sealKeys: [...sealKeys] });
    },

    sessionsToExport: ({ after }: { readonly after: number }): readonly ExportedSession[] =>
      (prepare(cold.sessionsAfter).all(after, stepSessions) as unknown as readonly SessionRow[]).map(toExported),

    sessionToExport(given: { readonly name: string; readonly isHidden: boolean }): ExportedSession | undefined {
      const row = prepare(given.isHidden ? cold.hiddenSession : cold.session).get(toNumber(given.name), given.name);
      return row && toExported(row as unknown as SessionRow);
    },

    /** The lines of these turns as far as they fit one step, and how many of them were read. What is gone has none. */
    turnLines({ turns }: { readonly turns: readonly number[] }): { readonly text: string; readonly taken: number } {
      let text = "";
      let taken = 0;
      for (const n of turns) {
        const row = prepare(cold.placedTurn).get(n) as PlacedTurn | undefined;
        if (row !== undefined) text += toLine(toTurnLine(row));
        taken += 1;
        if (text.length > stepCharacters) break;
      }
      return { text, taken };
    },
  };
}

interface SessionRow {
  readonly id: number;
  readonly n: number;
  readonly name: string;
  readonly kind: Kind;
  readonly owner: string;
  readonly created: number;
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
