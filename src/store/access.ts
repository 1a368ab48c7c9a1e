/** How the colder half of the store reads and writes: by name, on the writer's thread in the gateway, else directly. */
import type { Operator } from "../core/store.ts";
import type { Step } from "./deletions.ts";
import type { Reads } from "./reads.ts";
import type { ReadText, WithTexts } from "./rows.ts";
import type { Secrets } from "./secrets.ts";
import type { Writes } from "./writes.ts";

export interface Access {
  readonly read: Caller<Reads>;
  /** In one transaction, with whatever else comes at the same time; durable when it resolves. */
  readonly write: Caller<Writes>;
  /**
   * Erases deleted text from the raw files, and frees its space if `isLarge`. While another program reads the file, this
   * goes on after the promise has resolved.
   */
  scrub(isLarge: boolean): Promise<void>;
  readonly hasUnfinishedErasure: Operator["hasUnfinishedErasure"];
  readonly secrets: Secrets;
  /** The long texts beside these turns. */
  loadTexts(rows: readonly WithTexts[]): Promise<ReadText>;
}

type Caller<Functions extends Record<keyof Functions, (given: never) => unknown>> = <Name extends keyof Functions>(
  name: Name,
  given: Parameters<Functions[Name]>[0],
) => Promise<Awaited<ReturnType<Functions[Name]>>>;

/** Removes what is left of sessions that are gone: of those just deleted, or those that a process left that was killed. */
export function removeDoomed({ write }: Access): Promise<number> {
  return repeat(() => write("removeDoomed", undefined));
}

/** Repeats a step until it has nothing left to do. */
export async function repeat(step: () => Promise<Step>): Promise<number> {
  let turns = 0;
  for (let isDone = false; !isDone;) {
    const done = await step();
    turns += done.turns;
    ({ isDone } = done);
  }
  return turns;
}
