/**
 * The writer's thread as the store sees it. What comes together is one group; a failed write refuses turns before a model
 * is asked, one that succeeds lets them in again.
 */
import { getCompileCacheDir } from "node:module";
import { dirname, extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { GatewayError } from "../core/errors.ts";
import { createGrouped } from "./grouped.ts";
import { cannotRead, cannotWrite, type Failure, isLasting, isSyncFailure, toFailure, unavailable } from "./trouble.ts";

/** One of the thread's functions, and what it is given. */
export type Call = readonly [name: string, given: unknown];

/** What became of it: its result, or why it failed. */
export type Outcome = { readonly result: unknown } | { readonly failure: Failure };

export type Request = readonly Call[] | { readonly read: Call } | "empty-log" | "close";

export interface Writer {
  write(call: Call): Promise<unknown>;
  read(call: Call): Promise<unknown>;
  emptyLog(): Promise<void>;
  /** Throws why nothing can be kept now. */
  checkKeeping(): void;
  /** The same, by a write if none has succeeded lately. */
  check(): Promise<void>;
  close(): Promise<void>;
}

const probeMs = 1_000;
/** As large as a turn, for a small write may still fit on a full disk. */
const probeBytes = 65_536;

/** `lose` is told once: nothing may be written any more. The thread starts with the first thing to do. */
export function openWriter(file: string, lose: (message: string) => void): Writer {
  let thread: ReturnType<typeof startThread> | undefined;
  const calls = createGrouped(async (group: readonly Call[]) => (await send(group)).map(note));
  let trouble: GatewayError | undefined;
  let isLost = false;
  let isClosed = false;
  let savedAt = Number.NEGATIVE_INFINITY;
  let probe: NodeJS.Timeout | undefined;

  async function send(request: Request): Promise<readonly Outcome[]> {
    if (isLost) throw trouble;
    if (isClosed) throw unavailable("The session store is closed.");
    thread ??= startThread(file);
    try {
      return await thread.send(request);
    } catch (thrown) {
      throw fail(`The thread that writes the session store has ended: ${toFailure(thrown).message}`);
    }
  }

  function note(outcome: Outcome): unknown {
    if ("failure" in outcome) {
      if (isSyncFailure(outcome.failure)) return fail(`${syncFailed} (${outcome.failure.message})`);
      const error = cannotWrite(outcome.failure);
      if (isLasting(outcome.failure)) suffer(error);
      return error;
    }
    savedAt = performance.now();
    trouble = undefined;
    return outcome.result;
  }

  function suffer(error: GatewayError): void {
    trouble = error;
    probe ??= setTimeout(tryAgain, probeMs).unref();
  }

  async function tryAgain(): Promise<void> {
    probe = undefined;
    // If it fails, the next one is due already.
    await calls.send(["probe", { bytes: probeBytes }]).catch(() => {});
  }

  function fail(message: string): GatewayError {
    trouble = unavailable("The session store cannot save anything any more. The gateway stops; its log has the cause.");
    if (!isLost) lose(`${message} (${file})`);
    isLost = true;
    return trouble;
  }

  function checkKeeping(): void {
    if (trouble !== undefined) throw trouble;
  }

  return {
    write: calls.send,
    async read(call) {
      const [outcome] = await send({ read: call });
      if (outcome !== undefined && "result" in outcome) return outcome.result;
      throw cannotRead(outcome?.failure ?? { message: "The thread answered nothing." });
    },
    async emptyLog() {
      const [outcome] = await send("empty-log");
      if (outcome !== undefined && "failure" in outcome) throw note(outcome);
    },
    checkKeeping,
    async check() {
      checkKeeping();
      if (performance.now() - savedAt > probeMs) await calls.send(["probe", { bytes: 1 }]);
    },
    async close() {
      await calls.idle();
      isClosed = true;
      clearTimeout(probe);
      // To close it would write what nobody knows the fate of.
      await (isLost ? thread?.kill() : thread?.close());
    },
  };
}

const syncFailed =
  "The disk failed to sync the session store, so nobody can tell what is on it. The gateway stops: check the disk, then start it again.";

/** Answers come in the order of what was sent. */
function startThread(file: string) {
  // The same ending as this file's, in the sources and in the package; none of the process's own flags.
  const program = new URL(`./writer${extname(import.meta.filename)}`, import.meta.url);
  const worker = new Worker(program, { workerData: { file }, execArgv: [], env: withCompiled(process.env) });
  const waiting: { resolve(outcomes: readonly Outcome[]): void; reject(error: unknown): void }[] = [];
  let end: unknown;
  const ended = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      end ??= new Error("It has ended.");
      for (const { reject } of waiting.splice(0)) reject(end);
      resolve();
    });
  });
  worker.on("message", (outcomes: readonly Outcome[]) => waiting.shift()?.resolve(outcomes));
  worker.on("error", (error) => (end = error));

  return {
    /** Rejects if the thread has ended. */
    send: (request: Request): Promise<readonly Outcome[]> =>
      new Promise((resolve, reject) => {
        if (end !== undefined) return reject(end);
        waiting.push({ resolve, reject });
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
        worker.postMessage(request);
      }),
    async close(): Promise<void> {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
      worker.postMessage("close");
      await ended;
    },
    /** Ends it where it stands. */
    kill: () => worker.terminate(),
  };
}

/** A thread learns of the cache of compiled code by its environment alone; without, it takes 30 MB more. */
function withCompiled(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const folder = getCompileCacheDir();
  return folder === undefined ? env : { ...env, NODE_COMPILE_CACHE: dirname(folder) };
}
