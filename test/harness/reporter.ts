/** Tells what became of each test, a line of JSON each, for `all.ts` to gather from several processes. */
import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";

export interface Result {
  /** `http/errors.test.ts > a token is never in an answer`. */
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** Why it failed or was skipped. */
  readonly why: string;
  readonly ms: number;
}

/** Before each line, so that what tests print themselves is told apart. */
export const mark = "\u001e";

/** The last line of a process that ran all of its tests. */
export const allTold = `${mark}all told`;

const folder = `${import.meta.dirname}/..`;

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    // What a test tells of itself, such as its seed; the runner's own counts have no file.
    if (type === "test:diagnostic" && data.file !== undefined)
      yield `${relative(folder, data.file)}: ${data.message}\n`;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { name, file = "", skip, details } = data;
    const error = type === "test:fail" ? data.details.error : undefined;
    const outcome = skip !== undefined ? "skipped" : error === undefined ? "passed" : "failed";
    const why = error === undefined ? String(skip ?? "") : inspect(error.cause ?? error);
    const result: Result = { name: `${relative(folder, file)} > ${name}`, outcome, why, ms: details.duration_ms };
    yield `${mark}${JSON.stringify(result)}\n`;
  }
  yield `${allTold}\n`;
}
