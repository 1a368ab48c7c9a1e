/** What turns look up: all that is asked in one tick of the event loop in one statement. */
import type { Maker, Node, Session } from "../../core/place.ts";
import type { Finding, Query } from "../../core/store.ts";
import { toNumber } from "../cold.ts";
import type { Before } from "./claims.ts";
import { type Kind, toItems, toNode } from "../rows.ts";
import { add, type Database, type Statement, toColumns } from "./database.ts";

/** `before`: what is asked in the same round trip ahead of it. */
export function createFind({ ask }: Pick<Database, "ask">) {
  return async (queries: readonly Query[], before: Before): Promise<readonly Finding[]> => {
    const told = await ask(...before.statements, toStatement(queries));
    before.take(told);
    const drafts = queries.map((): Draft => ({ makers: new Map() }));
    for (const row of (told.at(-1) ?? []) as unknown as readonly FoundRow[]) take(drafts[row[1]], row);
    const asked = await askQuestions(queries, drafts);
    return drafts.map((draft, index) => toFinding(draft, asked.has(index)));
  };

  /** Which of them repeat a question of their session, where nothing that they show was found. */
  async function askQuestions(queries: readonly Query[], drafts: readonly Draft[]): Promise<ReadonlySet<number>> {
    const [at, sessions, questions]: [number[], number[], string[]] = [[], [], []];
    for (const [index, { shown, prefilled, named }] of queries.entries()) {
      const { number, match } = drafts[index] ?? {};
      if (number === undefined || match !== undefined || named !== undefined) continue;
      for (const question of [...(prefilled === undefined ? [] : [prefilled]), ...shown.map((one) => one.question)]) {
        at.push(index);
        sessions.push(number);
        questions.push(question());
      }
    }
    if (at.length === 0) return new Set();
    const [found = []] = await ask([questionStatement, at, sessions, questions]);
    return new Set(found.map(([index]) => Number(index)));
  }
}

/** What is known of one query so far. */
interface Draft {
  number?: number;
  session?: Session;
  named?: Node;
  match?: { readonly node: Node; readonly depth: number };
  readonly makers: Map<string, Maker>;
}

/** `text` is a session's name, or what a maker answered. */
type FoundRow = readonly [
  part: "session" | "named" | "match" | "maker",
  index: number,
  ...standing: readonly [text: string, number: number, kind: Kind, shows: number, tip: number | null],
  at: number,
  call: string,
  n: number | null,
  ...node: readonly [digest: string | null, remembers: number, depth: number, followed: number],
];

function take(draft: Draft | undefined, row: FoundRow): void {
  if (draft === undefined) return;
  const [part, , text, number, kind, shows, tip, at, call, n, ...rest] = row;
  const node = n === null ? undefined : toNode([n, ...rest]);
  if (part === "match" && node !== undefined) draft.match = { node, depth: at };
  else if (part === "maker" && node !== undefined) draft.makers.set(call, { node, answer: toItems(text) });
  else if (part === "session" || part === "named") {
    const leading = node !== undefined && tip !== null ? { ...node, turn: tip } : undefined;
    draft.number = number;
    draft.session = { id: `conv_${text}`, isHidden: kind === "hidden", shows: shows === 1, tip: leading };
    if (part === "named" && node !== undefined) draft.named = node;
  }
}

function toFinding({ session, named, match, makers }: Draft, isAsked: boolean): Finding {
  return { session, named, match, makers, wasAsked: match !== undefined || isAsked };
}

function toStatement(queries: readonly Query[]): Statement {
  const [bySession, byName, byMark, byCall] = [toColumns(4), toColumns(4), toColumns(3), toColumns(2)];
  for (const [index, { owner, session, named, shown, calls }] of queries.entries()) {
    const name = session?.slice("conv_".length);
    if (named !== undefined) add(byName, index, toNumber(named), named, owner);
    else if (name !== undefined) {
      add(bySession, index, toNumber(name), name, owner);
      for (const [at, { digest }] of shown.entries()) add(byMark, index, at, digest);
      for (const call of calls) add(byCall, index, call);
    }
  }
  return [findStatement, ...bySession, ...byName, ...byMark, ...byCall];
}

const node = "t.n, t.digest, t.remembers, t.depth";
const findStatement = `WITH asked AS MATERIALIZED (
    SELECT a.i, s.n, s.name, s.kind, s.shows, s.tip
    FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS a (i, id, name, owner)
    JOIN session s ON s.id = a.id AND s.name = a.name AND s.owner = a.owner)
  SELECT 'session', a.i, a.name, a.n, a.kind, a.shows, a.tip, NULL::int, NULL::text, ${node}, 0
    FROM asked a LEFT JOIN turn t ON t.n = a.tip
  UNION ALL SELECT 'named', a.i, s.name, s.n, s.kind, s.shows, s.tip, NULL, NULL, ${node}, 0
    FROM unnest($5::int[], $6::bigint[], $7::text[], $8::text[]) AS a (i, n, key, owner)
    JOIN turn t ON t.n = a.n AND t.key = a.key AND t.echo IS NOT NULL AND t.digest IS NOT NULL
    JOIN session s ON s.n = t.session AND s.owner = a.owner
    WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.turn = t.n AND r.unnamed = 1)
  UNION ALL SELECT 'match', t.i, NULL, NULL, NULL, NULL, NULL, t.at, NULL, ${node},
      CASE WHEN EXISTS (SELECT 1 FROM turn c WHERE c.parent = t.n AND c.digest IS NOT NULL) THEN 1 ELSE 0 END
    FROM (SELECT DISTINCT ON (a.i) a.i, m.at, ${node}
      FROM unnest($9::int[], $10::int[], $11::text[]) AS m (i, at, digest) JOIN asked a ON a.i = m.i
      JOIN turn t ON t.session = a.n AND t.digest = m.digest ORDER BY a.i, m.at, t.n DESC) t
  UNION ALL SELECT 'maker', a.i, t.answer, NULL, NULL, NULL, NULL, NULL, c.id, ${node}, 0
    FROM unnest($12::int[], $13::text[]) AS w (i, id) JOIN asked a ON a.i = w.i
    JOIN call c ON c.session = a.n AND c.id = w.id JOIN turn t ON t.n = c.turn`;
const questionStatement = `SELECT DISTINCT a.i FROM unnest($1::int[], $2::bigint[], $3::text[]) AS a (i, session, question)
  WHERE EXISTS (SELECT 1 FROM turn t WHERE t.session = a.session AND t.question = a.question)`;
