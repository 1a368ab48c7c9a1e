/** A thread of our own, as whoever sends it work sees it. Answers come in the order of what was sent. */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Failure } from "./trouble.ts";

/** One call of a thread's function: its name and what it is given. */
export type Call<Functions extends Record<keyof Functions, (given: never) => unknown>> = {
  [Name in keyof Functions]: readonly [Name, Parameters<Functions[Name]>[0]];
}[keyof Functions];

export type Request<Functions extends Record<keyof Functions, (given: never) => unknown>> =
  | readonly Call<Functions>[]
  | "empty-log"
  | "close";

/** What became of one: its result, or why it failed. */
export type Outcome = { readonly result: unknown } | { readonly failure: Failure };

export interface Thread<Functions extends Record<keyof Functions, (given: never) => unknown>> {
  /** Rejects if the thread has ended. */
  send(request: Exclude<Request<Functions>, "close">): Promise<readonly Outcome[]>;
  close(): Promise<void>;
  /** Ends it where it stands. */
  kill(): Promise<unknown>;
}

export function startThread<Functions extends Record<keyof Functions, (given: never) => unknown>>(
  name: "reader" | "writer",
  data: object,
): Thread<Functions> {
  // The same ending as this file's, in the sources and in the package; none of the process's own flags.
  const program = new URL(`./${name}${extname(import.meta.filename)}`, import.meta.url);
  const worker = new Worker(program, { workerData: data, execArgv: [] });
  const waiting: { resolve(outcomes: readonly Outcome[]): void; reject(error: unknown): void }[] = [];
  let end: Error | undefined;
  const closed = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      end ??= new Error(`The store's ${name} has ended.`);
      for (const { reject } of waiting.splice(0)) reject(end);
      resolve();
    });
  });
  worker.on("message", (outcomes: readonly Outcome[]) => waiting.shift()?.resolve(outcomes));
  worker.on("error", (error) => {
    end = error instanceof Error ? error : new Error(String(error));
  });
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        if (end !== undefined) return reject(end);
        waiting.push({ resolve, reject });
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
        worker.postMessage(request);
      }),
    async close() {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
      worker.postMessage("close");
      await closed;
    },
    kill: () => worker.terminate(),
  };
}
