/** The writer's thread as the store sees it. What comes together is one group. */
import { getCompileCacheDir } from "node:module";
import { dirname, extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { GatewayError } from "../core/errors.ts";
import { createErasure, type Erasure } from "./erasure.ts";
import { findMove, type OpenedFile } from "./file.ts";
import { createGrouped } from "./grouped.ts";
import { createKeeping, type Keeping } from "./keeping.ts";
import {
  cannotRead,
  cannotWrite,
  type Failure,
  isLasting,
  isSyncFailure,
  moved,
  toFailure,
  unavailable,
} from "./trouble.ts";

/** One of the thread's functions, and what it is given. */
export type Call = readonly [name: string, given: unknown];

/** What became of it: its result, or why it failed. */
export type Outcome = { readonly result: unknown } | { readonly failure: Failure };

export type Request = readonly Call[] | { readonly read: Call } | "empty-log" | "look" | "close";

export interface Writer extends Pick<Keeping, "checkKeeping" | "check"> {
  write(call: Call): Promise<unknown>;
  read(call: Call): Promise<unknown>;
  readonly erasure: Erasure;
  /**
   * From now on checks the file every second: fails the store if the file is not in its place, and finishes the
   * deletions of other processes.
   */
  watch(): void;
  close(): Promise<void>;
}

const lookEveryMs = 1_000;

/** `lose` is told once: nothing may be written any more. The thread starts with the first thing to do. */
export function openWriter(opened: OpenedFile, lose: (message: string) => void): Writer {
  const { file } = opened;
  let thread: ReturnType<typeof startThread> | undefined;
  const calls = createGrouped(async (group: readonly Call[]) => (await send(group)).map(note));
  const keeping = createKeeping((bytes) => calls.send(["probe", { bytes }]));
  let lost: GatewayError | undefined;
  let isClosed = false;
  let nextLook: NodeJS.Timeout | undefined;
  const erasure = createErasure(emptyLog);

  async function send(request: Request): Promise<readonly Outcome[]> {
    if (lost !== undefined) throw lost;
    if (isClosed) throw unavailable("The session store is closed.");
    thread ??= start();
    try {
      return await thread.send(request);
    } catch (thrown) {
      throw fail(`The thread that writes the session store has ended: ${toFailure(thrown).message} (${file})`);
    }
  }

  /** If the file is gone, the thread would create an empty one. */
  function start(): ReturnType<typeof startThread> {
    const failure = findMove(opened);
    if (failure !== undefined) throw explain(failure);
    return startThread(opened);
  }

  function note(outcome: Outcome): unknown {
    if ("failure" in outcome) {
      const error = explain(outcome.failure);
      if (isLasting(outcome.failure)) keeping.suffer(error);
      return error;
    }
    keeping.saved();
    return outcome.result;
  }

  /** After some failures nothing may be written any more. */
  function explain(failure: Failure): GatewayError {
    if (isSyncFailure(failure)) return fail(`${syncFailed} (${failure.message}) (${file})`);
    return failure.number === moved ? fail(describeMove(opened)) : cannotWrite(failure);
  }

  async function emptyLog(): Promise<boolean> {
    const [outcome] = await send("empty-log");
    if (outcome !== undefined && "failure" in outcome) throw explain(outcome.failure);
    return outcome?.result === true;
  }

  async function look(): Promise<void> {
    const [outcome] = await send("look");
    if (outcome !== undefined && "failure" in outcome) throw explain(outcome.failure);
    if (outcome?.result === true) await erasure.finish();
  }

  function watch(): void {
    // An important failure is reported elsewhere: it fails the store, or the next write fails too.
    const lookAgain = (): void => void look().then(watch, watch);
    if (lost === undefined && !isClosed) nextLook = setTimeout(lookAgain, lookEveryMs).unref();
  }

  function fail(message: string): GatewayError {
    if (lost === undefined) lose(message);
    lost = unavailable("The session store cannot save anything any more. The gateway stops; its log has the cause.");
    keeping.suffer(lost);
    return lost;
  }

  return {
    write: calls.send,
    async read(call) {
      const [outcome] = await send({ read: call });
      if (outcome !== undefined && "result" in outcome) return outcome.result;
      throw cannotRead(outcome?.failure ?? { message: "The thread answered nothing." });
    },
    erasure,
    watch,
    checkKeeping: keeping.checkKeeping,
    check: keeping.check,
    async close() {
      await calls.idle();
      isClosed = true;
      clearTimeout(nextLook);
      erasure.stop();
      keeping.stop();
      // To close it would write what nobody knows the fate of.
      await (lost !== undefined ? thread?.kill() : thread?.close());
    },
  };
}

const syncFailed =
  "The disk failed to sync the session store, so nobody can tell what is on it. The gateway stops: check the disk, then start it again.";

const describeMove = ({ file, path }: OpenedFile): string =>
  `The session store's file was moved, deleted or replaced while the gateway ran (${file}). The gateway stops: put the file back, or start again with the one that is there, without the old ${path}-wal and ${path}-shm.`;

/** Answers come in the order of what was sent. */
function startThread(opened: OpenedFile) {
  // The same ending as this file's, in the sources and in the package; none of the process's own flags.
  const program = new URL(`./writer${extname(import.meta.filename)}`, import.meta.url);
  const worker = new Worker(program, { workerData: opened, execArgv: [], env: withCompiled(process.env) });
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
        // Throws for what cannot be cloned: then no answer comes, and nothing may wait for one.
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
        worker.postMessage(request);
        waiting.push({ resolve, reject });
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
