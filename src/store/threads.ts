/** A thread of our own, as whoever sends it work sees it: answers come in the order of what was sent. */
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { cannotRead, type Failure } from "./trouble.ts";

/** One of a thread's functions, and what it is given. */
export type Call = readonly [name: string, given: unknown];

/** What became of it: its result, or why it failed. */
export type Outcome = { readonly result: unknown } | { readonly failure: Failure };

export type Request = readonly Call[] | "empty-log" | "close";

export interface Thread {
  /** Rejects if the thread has ended. */
  send(request: Request): Promise<readonly Outcome[]>;
  close(): Promise<void>;
  /** Ends it where it stands. */
  kill(): Promise<unknown>;
}

export function startThread(name: "reader" | "writer", data: object): Thread {
  // The same ending as this file's, in the sources and in the package; none of the process's own flags.
  const program = new URL(`./${name}${extname(import.meta.filename)}`, import.meta.url);
  const worker = new Worker(program, { workerData: data, execArgv: [] });
  const waiting: { resolve(outcomes: readonly Outcome[]): void; reject(error: unknown): void }[] = [];
  let end: unknown;
  const ended = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      end ??= new Error(`The store's ${name} has ended.`);
      for (const { reject } of waiting.splice(0)) reject(end);
      resolve();
    });
  });
  worker.on("message", (outcomes: readonly Outcome[]) => waiting.shift()?.resolve(outcomes));
  worker.on("error", (error) => (end = error));

  function send(request: Request): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      if (end !== undefined) return reject(end);
      waiting.push({ resolve, reject });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
      worker.postMessage(request);
    });
  }

  return {
    send,
    async close() {
      await Promise.race([send("close").catch(() => {}), ended]);
      await ended;
    },
    kill: () => worker.terminate(),
  };
}

/** Few gateways ever need it, so it starts when it is first asked. */
export function openReader(file: string) {
  let thread: Thread | undefined;
  return {
    async read(call: Call): Promise<unknown> {
      thread ??= startThread("reader", { file });
      const [outcome] = await thread.send([call]);
      if (outcome !== undefined && "result" in outcome) return outcome.result;
      throw cannotRead(outcome?.failure ?? { message: "The reader answered nothing." });
    },
    close: async () => thread?.close(),
  };
}
