/** A gateway of several processes: the parent starts its workers, hands them the configuration, and watches over them. */
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { setTimeout as wait } from "node:timers/promises";
import type { Config } from "../config/config.ts";
import { isObject } from "../config/problem.ts";
import { toShare } from "../config/share.ts";
import { createLog } from "../observe/log.ts";
import { sumUp } from "../observe/sum.ts";
import type { Portico } from "../portico.ts";
import { type Ask, connect } from "./channel.ts";
import { messageOf } from "./output.ts";

/** How long after its end a worker is replaced: twice as long each time, unless it had run steadily. */
const shortestMs = 100;
const longestMs = 10_000;
const steadyMs = 10_000;
/** How long one that is busy may take to tell what it has measured; then what it told before counts. */
const measureMs = 1_000;

interface Worker {
  readonly ask: Ask;
  /** It drains, and ends. */
  release(): void;
  /** At once. */
  kill(): void;
  /** How it did. */
  readonly ended: Promise<string>;
  /** What it told last. */
  measured: string;
}

/** Throws, and leaves no worker, if the first start of one fails. */
export async function openWorkers(first: Config): Promise<Pick<Portico, "address" | "log" | "reload" | "close">> {
  const log = createLog(first.logLevel);
  const closing = new AbortController();
  const workers = new Map<number, Worker>();
  /** What those have counted that have ended: a sum must not fall. */
  let past = "";
  let config = toShare(first);
  cluster.setupPrimary({ args: ["worker"], serialization: "advanced" });
  // Also at the second signal, when they are draining.
  process.on("exit", () => workers.forEach((worker) => worker.kill()));

  try {
    // The first one alone: it may have to prepare the store, and to clear away a dead socket.
    const address = await begin(1);
    await Promise.all(Array.from({ length: first.workers - 1 }, (_, index) => begin(index + 2)));
    return { address: address || undefined, log, reload, close };
  } catch (thrown) {
    await close().catch(() => {});
    throw thrown;
  }

  async function begin(number: number): Promise<string> {
    const worker = start(number);
    const address = await worker.ask({ type: "start", config });
    void keep(number, worker);
    return address;
  }

  /** There is always one of this number, until the gateway closes. */
  async function keep(number: number, worker: Worker): Promise<void> {
    let pauseMs = shortestMs;
    while (true) {
      const since = performance.now();
      const how = await worker.ended;
      if (closing.signal.aborted) return;
      if (performance.now() - since >= steadyMs) pauseMs = shortestMs;
      log.error({ worker: number }, `A worker ended (${how}). Another one starts in ${pauseMs} ms.`);
      await wait(pauseMs, undefined, { signal: closing.signal }).catch(() => {});
      if (closing.signal.aborted) return;
      pauseMs = Math.min(pauseMs * 2, longestMs);
      worker = start(number);
      const started = worker.ask({ type: "start", config });
      started.then(() => log.info({ worker: number }, "The worker runs."), toReplace(number, worker));
    }
  }

  function start(number: number): Worker {
    const own = cluster.fork();
    const dropHanded = watchHanding(own.process);
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    const worker: Worker = {
      ask: connect(own, measureAll),
      release: () => own.isConnected() && own.process.disconnect(),
      kill: () => own.process.kill("SIGKILL"),
      ended,
      measured: "",
    };
    workers.set(number, worker);
    own.once("exit", (code: number | null, signal: string | null) => end(signal ?? `code ${code}`));
    // The system may refuse another process.
    own.on("error", (failure) => own.process.pid === undefined && end(messageOf(failure)));
    return worker;

    function end(how: string): void {
      dropHanded();
      workers.delete(number);
      past = sumUp([past, worker.measured].map((text) => ({ worker: undefined, text })));
      resolve(how);
    }
  }

  /** One that cannot have the configuration ends, and is tried anew. */
  function toReplace(number: number, worker: Worker) {
    return (thrown: unknown): void => {
      log.error({ worker: number }, messageOf(thrown));
      worker.release();
    };
  }

  /** One tries first, so that a configuration which cannot be changes nothing. */
  async function reload(next: Config): Promise<void> {
    const share = toShare(next);
    const [trial] = workers.values();
    await trial?.ask({ type: "reload", config: share });
    config = share;
    log.setLevel(next.logLevel);
    const others = [...workers].filter(([, worker]) => worker !== trial);
    const asked = others.map(([number, worker]) =>
      worker.ask({ type: "reload", config }).catch(toReplace(number, worker)),
    );
    await Promise.all(asked);
  }

  async function measureAll(): Promise<string> {
    const reading = Array.from(workers.values(), async (worker) => {
      const measured = worker.ask({ type: "measure" }).catch(() => undefined);
      const late = wait(measureMs, undefined, { ref: false });
      worker.measured = (await Promise.race([measured, late])) ?? worker.measured;
    });
    await Promise.all(reading);
    const texts = Array.from(workers, ([number, { measured }]) => ({ worker: number, text: measured }));
    return sumUp([{ worker: undefined, text: past }, ...texts]);
  }

  /** Workers let running turns end. */
  async function close(): Promise<void> {
    closing.abort();
    const ends = Array.from(workers.values(), (worker) => {
      worker.release();
      return worker.ended;
    });
    const failed = (await Promise.all(ends)).filter((how) => how !== "code 0");
    await log.close();
    if (failed.length > 0) throw new Error(`a worker ended (${failed.join(", ")})`);
  }
}

/** Node forgets a connection that it hands to a worker which is just dying: nobody would answer it, nor ever close it. */
function watchHanding(child: ChildProcess): () => void {
  const { send } = child;
  /** The last one of each listener: the next is handed when the worker has taken that, and Node has closed it here. */
  const handed = new Map<unknown, unknown>();
  child.send = (...given: readonly unknown[]): boolean => {
    const [message, handle] = given;
    if (isObject(message) && isObject(handle)) handed.set(message["key"], handle);
    return Reflect.apply(send, child, given);
  };
  return () => {
    for (const handle of handed.values())
      if (isObject(handle) && typeof handle["close"] === "function") Reflect.apply(handle["close"], handle, []);
  };
}
