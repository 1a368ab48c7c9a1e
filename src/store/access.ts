/** How the colder half of the store reads and writes: by name, through threads in the gateway, else directly. */
import type { Reads } from "./reads.ts";
import type { ReadText } from "./rows.ts";
import type { Secrets } from "./secrets.ts";
import type { Writes } from "./writes.ts";

export interface Access {
  /** What may take long. */
  readonly read: Caller<Reads>;
  /** In one transaction, with whatever else comes at the same time; durable when it resolves. */
  readonly write: Caller<Writes>;
  /** What was deleted is not in SQLite's log any more. */
  emptyLog(): Promise<void>;
  readonly secrets: Secrets;
  readonly readText: ReadText;
}

type Caller<Functions extends Record<keyof Functions, (given: never) => unknown>> = <Name extends keyof Functions>(
  name: Name,
  given: Parameters<Functions[Name]>[0],
) => Promise<ReturnType<Functions[Name]>>;
