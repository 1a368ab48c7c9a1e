/** Writes what is stored as lines of an archive, some at a time. */
import type { Item } from "../core/item.ts";
import { type ArchivedTurn, type HeadLine, type SessionLine, type TurnLine, version } from "./archive.ts";
import { cold } from "./cold.ts";
import type { Prepare } from "./prepared.ts";
import { createReadText, type Kind, lengthen, toEcho } from "./rows.ts";
import { toNumber } from "./schema.ts";
import { readSecrets } from "./secrets.ts";

/** Sessions, each with the numbers of its turns. */
const stepSessions = 100;
/** How much one step reads, once it is more. */
const stepCharacters = 1024 * 1024;

export interface ExportedSession {
  readonly id: number;
  readonly line: string;
  readonly turns: readonly number[];
}

export function createExport(prepare: Prepare) {
  const readText = createReadText(prepare);

  function toExported(row: SessionRow): ExportedSession {
    const numbers = prepare(cold.turnNumbers).all(row.n) as unknown as readonly { readonly n: number }[];
    return { id: row.id, line: `${JSON.stringify(toSessionLine(row))}\n`, turns: numbers.map(({ n }) => n) };
  }

  function toTurnLine(row: ArchivedTurn): TurnLine {
    const items = (JSON.parse(row.input) as (Item | null)[]).map((item) =>
      item === null ? null : lengthen(item, (digest) => readText(row.session, digest)),
    );
    return {
      type: "turn",
      id: row.key,
      owner: row.owner,
      session: `conv_${row.name}`,
      parent: row.parent ?? undefined,
      depth: row.depth,
      remembers: row.remembers === 1,
      question: row.question ?? undefined,
      digest: row.digest ?? undefined,
      createdAt: toDate(row.created),
      model: row.model,
      input: items,
      answer: JSON.parse(row.answer) as (Item | null)[],
      told: row.told === "" ? undefined : (JSON.parse(row.told) as object),
      echo: toEcho(row, readText),
    };
  }

  return {
    archiveHead(): string {
      const keys = { hintKeys: readSecrets(prepare, "hints"), sealKeys: readSecrets(prepare, "seals") };
      return `${JSON.stringify({ type: "portico", version, ...keys } satisfies HeadLine)}\n`;
    },

    sessionsToExport: ({ after }: { readonly after: number }): readonly ExportedSession[] =>
      (prepare(cold.sessionsAfter).all(after, stepSessions) as unknown as readonly SessionRow[]).map(toExported),

    sessionToExport({
      name,
      isHidden,
    }: {
      readonly name: string;
      readonly isHidden: boolean;
    }): ExportedSession | undefined {
      const row = prepare(isHidden ? cold.hiddenSession : cold.session).get(toNumber(name), name);
      return row && toExported(row as unknown as SessionRow);
    },

    /** The lines of these turns as far as they fit one step, and how many of them were read. What is gone has none. */
    turnLines({ turns }: { readonly turns: readonly number[] }): { readonly text: string; readonly taken: number } {
      let text = "";
      let taken = 0;
      for (const n of turns) {
        const row = prepare(cold.archivedTurn).get(n) as ArchivedTurn | undefined;
        if (row !== undefined) text += `${JSON.stringify(toTurnLine(row))}\n`;
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
  return {
    type: "session",
    id: `conv_${name}`,
    owner,
    kind,
    shows: shows === 1,
    tip: tip ?? undefined,
    metadata: JSON.parse(metadata) as Readonly<Record<string, string>>,
    createdAt: toDate(created),
    usedAt: toDate(used),
  };
}

const toDate = (at: number): string => new Date(at).toISOString();
