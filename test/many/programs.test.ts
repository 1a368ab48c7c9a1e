/** An agent asks for a title beside its first message, in another process: the main request sees only itself, and is the tip. */
import { test } from "node:test";
import { need } from "../harness/needs.ts";
import { playPrograms, type Ends } from "../sessions/programs.ts";
import { sharePair } from "./pair.ts";

const { skip } = need("postgres");
const open = sharePair();

for (const first of ["title", "main"] as const) {
  for (const ends of ["title", "main", "before"] as const satisfies readonly Ends[]) {
    const when = ends === "before" ? "and has ended when the other comes" : `and the ${ends} request ends first`;
    test(`the ${first} request comes first ${when}: the main request sees only itself`, { skip }, async () => {
      const { one, other } = await open();
      await playPrograms(first, ends, first === "title" ? [one, other] : [other, one]);
    });
  }
}
