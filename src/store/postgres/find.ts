/** What turns look up: all that is asked in one tick of the event loop in one round trip. */
import type { Maker, Node, Session } from "../../core/place.ts";
import type { Finding, Query } from "../../core/store.ts";
import { toNumber, type Value } from "../cold.ts";
import type { Before } from "./claims.ts";
import { type Kind, type NodeRow, toItems, toNode, toTip } from "../rows.ts";
import { add, type Database, type Rows, type Statement, toColumns } from "./database.ts";

/** What is known of one query so far. */
interface Draft {
  number?: number;
  session?: Session;
  named?: Node;
  match?: { readonly node: Node; readonly depth: number };
  readonly makers: Map<string, Maker>;
}

/** One kind of look-up: how many columns it is given, and what a row of what it finds means, behind its query's index. */
interface Part {
  readonly text: string;
  readonly columns: Value[][];
  take(draft: Draft, row: readonly Value[]): void;
}

/** `before`: what is asked in the same round trip ahead of it. */
export function createFind({ ask }: Pick<Database, "ask">) {
  return async (queries: readonly Query[], before: Before): Promise<readonly Finding[]> => {
    const parts = toParts(queries).filter(({ columns }) => columns[0]?.length !== 0);
    let told: readonly Rows[] = [];
    try {
      told = await ask(...before.statements, ...parts.map(({ text, columns }): Statement => [text, ...columns]));
    } finally {
      before.take(told);
    }
    const drafts = queries.map((): Draft => ({ makers: new Map() }));
    for (const [at, { take }] of parts.entries()) takeAll(drafts, told[before.statements.length + at] ?? [], take);
    const asked = await askQuestions(queries, drafts);
    return drafts.map(({ session, named, match, makers }, index) => {
      return { session, named, match, makers, wasAsked: match !== undefined || asked.has(index) };
    });
  };

  /** Which of them repeat a question of their session, where nothing that they show was found. */
  async function askQuestions(queries: readonly Query[], drafts: readonly Draft[]): Promise<ReadonlySet<number>> {
    const columns = toColumns(3);
    for (const [index, { shown, prefilled, named }] of queries.entries()) {
      const { number, match } = drafts[index] ?? {};
      if (number === undefined || match !== undefined || named !== undefined) continue;
      if (prefilled !== undefined) add(columns, index, number, prefilled());
      for (const { question } of shown) add(columns, index, number, question());
    }
    if (columns[0]?.length === 0) return new Set();
    const [found = []] = await ask([questionStatement, ...columns]);
    return new Set(found.map(([index]) => Number(index)));
  }
}

function takeAll(drafts: readonly Draft[], rows: Rows, take: Part["take"]): void {
  for (const [index, ...row] of rows) {
    const draft = drafts[Number(index)];
    if (draft !== undefined) take(draft, row);
  }
}

function toParts(queries: readonly Query[]): readonly Part[] {
  const [bySession, byName, byMark, byCall] = [toColumns(4), toColumns(4), toColumns(5), toColumns(4)];
  for (const [index, { owner, session, named, shown, calls }] of queries.entries()) {
    const name = session?.slice("conv_".length) ?? "";
    const place = [index, toNumber(name), name] as const;
    if (named !== undefined) add(byName, index, toNumber(named), named, owner);
    else if (session !== undefined) {
      add(bySession, ...place, owner);
      for (const [at, { digest }] of shown.entries()) add(byMark, ...place, at, digest);
      for (const call of calls) add(byCall, ...place, call);
    }
  }
  return [
    { text: sessionStatement, columns: bySession, take: takeSession },
    { text: namedStatement, columns: byName, take: takeNamed },
    { text: matchStatement, columns: byMark, take: takeMatch },
    { text: makerStatement, columns: byCall, take: takeMaker },
  ];
}

function takeSession(draft: Draft, row: readonly Value[]): void {
  const [number, name, kind, shows, tip, digest, remembers, depth, instructions, tools] = row as unknown as SessionRow;
  draft.number = number;
  const node = tip === null ? undefined : toNode([tip, digest, remembers, depth, 0]);
  const leading = node && toTip(node, instructions, tools);
  draft.session = { id: `conv_${name}`, isHidden: kind === "hidden", shows: shows === 1, tip: leading };
}

function takeNamed(draft: Draft, [n = null, ...row]: readonly Value[]): void {
  takeSession(draft, row);
  const [, , , , , digest, remembers, depth] = row as unknown as SessionRow;
  draft.named = toNode([Number(n), digest, remembers, depth, 0]);
}

function takeMatch(draft: Draft, [depth = 0, ...node]: readonly Value[]): void {
  draft.match = { node: toNode(node as unknown as NodeRow), depth: Number(depth) };
}

function takeMaker(draft: Draft, [call, answer, ...node]: readonly Value[]): void {
  draft.makers.set(String(call), { node: toNode(node as unknown as NodeRow), answer: toItems(String(answer)) });
}

type SessionRow = readonly [
  number: number,
  ...standing: readonly [name: string, kind: Kind, shows: number, tip: number | null],
  ...node: readonly [digest: string | null, remembers: number, depth: number],
  ...program: readonly [instructions: string | null, tools: number | null],
];

const node = "t.n, t.digest, t.remembers, t.depth";
const standing = "s.n, s.name, s.kind, s.shows, s.tip, t.digest, t.remembers, t.depth, t.instructions, t.tools";
const sessionStatement = `SELECT a.i, ${standing}
  FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS a (i, id, name, owner)
  JOIN session s ON s.id = a.id AND s.name = a.name AND s.owner = a.owner LEFT JOIN turn t ON t.n = s.tip`;
const namedStatement = `SELECT a.i, t.n, ${standing}
  FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS a (i, n, key, owner)
  JOIN turn t ON t.n = a.n AND t.key = a.key AND t.echo IS NOT NULL AND t.digest IS NOT NULL
  JOIN session s ON s.n = t.session AND s.owner = a.owner
  WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.turn = t.n AND r.unnamed = 1)`;
const matchStatement = `SELECT t.i, t.at, ${node},
    CASE WHEN EXISTS (SELECT 1 FROM turn c WHERE c.parent = t.n AND c.digest IS NOT NULL) THEN 1 ELSE 0 END
  FROM (SELECT DISTINCT ON (a.i) a.i, a.at, ${node}
    FROM unnest($1::int[], $2::bigint[], $3::text[], $4::int[], $5::text[]) AS a (i, id, name, at, digest)
    JOIN session s ON s.id = a.id AND s.name = a.name JOIN turn t ON t.session = s.n AND t.digest = a.digest
    ORDER BY a.i, a.at, t.n DESC) t`;
const makerStatement = `SELECT a.i, c.id, t.answer, ${node}, 0
  FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[]) AS a (i, id, name, call)
  JOIN session s ON s.id = a.id AND s.name = a.name
  JOIN call c ON c.session = s.n AND c.id = a.call JOIN turn t ON t.n = c.turn`;
const questionStatement = `SELECT DISTINCT a.i FROM unnest($1::int[], $2::bigint[], $3::text[]) AS a (i, session, question)
  WHERE EXISTS (SELECT 1 FROM turn t WHERE t.session = a.session AND t.question = a.question)`;
