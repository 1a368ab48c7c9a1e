/** What a model is shown again: all paths that are asked for in one tick in one statement, and the texts beside their turns in another. */
import type { Step } from "../../core/pair.ts";
import type { Access } from "../access.ts";
import { digestsIn, type PathRow, toPath, type WithTexts } from "../rows.ts";
import { add, type Database, toColumns } from "./database.ts";

export function createPaths({ ask }: Database, loadTexts: Access["loadTexts"]) {
  return async (turns: readonly number[]): Promise<readonly (readonly Step[])[]> => {
    const [found = []] = await ask([pathStatement, turns.map((_, index) => index), turns]);
    const paths = turns.map((): PathRow[] => []);
    for (const [index, key, session, depth, input, answer] of found)
      paths[Number(index)]?.push({ key, session, depth, input, answer } as PathRow);
    const texts = await loadTexts(paths.flat());
    return paths.map((rows) => toPath(rows, texts));
  };
}

export function createLoadTexts({ ask }: Database): Access["loadTexts"] {
  return async (rows: readonly WithTexts[]) => {
    const columns = toColumns(2);
    const texts = new Map<string, string | undefined>();
    for (const { session, input, echo = null } of rows)
      for (const digest of digestsIn(input, echo)) {
        if (!texts.has(`${session} ${digest}`)) add(columns, session, digest);
        texts.set(`${session} ${digest}`, undefined);
      }
    const [found = []] = texts.size === 0 ? [] : await ask([textStatement, ...columns]);
    for (const [session, digest, text] of found) texts.set(`${session} ${digest}`, String(text));
    return (session, digest) => texts.get(`${session} ${digest}`);
  };
}

/** Written so that it goes from turn to turn: how long paths are, the server cannot know. */
const pathStatement = `WITH RECURSIVE up (i, n) AS (
    SELECT * FROM unnest($1::int[], $2::bigint[])
    UNION ALL SELECT up.i, (SELECT t.parent FROM turn t WHERE t.n = up.n) FROM up WHERE up.n IS NOT NULL)
  SELECT up.i, t.key, t.session, t.depth, t.input, t.answer
  FROM up CROSS JOIN LATERAL (SELECT * FROM turn t WHERE t.n = up.n OFFSET 0) t`;
const textStatement = `SELECT t.session, t.digest, t.text FROM unnest($1::bigint[], $2::text[]) AS g (session, digest)
  JOIN text t ON t.session = g.session AND t.digest = g.digest`;
