/** Digests of what was said: a chain from the session over every run, by which a shown history finds its thread. */
import type { Item } from "../item.ts";
import { type Path, talkFrom } from "./path.ts";
import type { StoredTurn } from "../store.ts";
import { type Run, sideOf, toRuns } from "./runs.ts";
import { answerOf } from "./shown.ts";

export interface Chain {
  /** The digest after each run, continuing from another; a thread begins with its session's id. */
  follow(from: string, runs: readonly Run[]): readonly string[];
  /** Of the last answer and what it answers, if the runs end with an answer. */
  exchangeOf(sessionId: string, runs: readonly Run[]): string | undefined;
  /** What a turn of the session is found by, given the turns before it. */
  mark(sessionId: string, path: Path, input: readonly Item[], output: readonly Item[]): Marks;
}

export type Marks = Pick<StoredTurn, "digest" | "exchange">;

export function createChain(digest: (text: string) => string): Chain {
  const chain: Chain = {
    follow(from, runs) {
      let last = from;
      return runs.map((run) => (last = digest(`${last}\n${run.side}\n${run.canon}`)));
    },
    exchangeOf(sessionId, runs) {
      const [asked, answered] = runs.slice(-2);
      if (asked === undefined || answered?.side !== "model") return undefined;
      return digest(`${sessionId}\n${asked.side}\n${asked.canon}\n${answered.canon}`);
    },
    mark(sessionId, path, input, output) {
      const parent = path.tip;
      const items = input.concat(output);
      const before = neededBefore(path, items);
      const runs = toRuns(before.concat(items)).filter((run) => run.end > before.length);
      const from = parent === undefined ? sessionId : (parent.digest ?? digestOfPath(chain, sessionId, path));
      return { digest: chain.follow(from, runs).at(-1) ?? from, exchange: chain.exchangeOf(sessionId, runs) };
    },
  };
  return chain;
}

/** The calls that items answer are in the answer before them, as may be the beginning of their first run. */
function neededBefore(path: Path, items: readonly Item[]): readonly Item[] {
  const sides = items.map(sideOf);
  const first = sides.find((side) => side !== undefined);
  return first === path.lastSide || sides.includes("tools") ? answerOf(path.tip) : [];
}

/** For threads stored before turns had digests. */
function digestOfPath(chain: Chain, sessionId: string, path: Path): string {
  return chain.follow(sessionId, toRuns(talkFrom(path, 0))).at(-1) ?? sessionId;
}
