/** Pulls the parts of a model's stream, in batches, within time limits; an abort or a deadline ends it at once. */
import { setImmediate as breathe } from "node:timers/promises";
import { callerLeft, type GatewayError } from "../../core/errors.ts";
import { toLateness } from "../http/failure.ts";
import { createWatch } from "../watch.ts";
import { checkPart, checkStream } from "./check.ts";
import type { StreamPart } from "./spec.ts";

export interface PartLimits {
  readonly firstByteMs: number;
  readonly idleMs: number;
  /** Absent: as long as parts come. */
  readonly totalMs: number | undefined;
  /** How errors name the other side. */
  readonly address: string;
}

/** The most parts in a batch, so that a burst cannot hold up other turns. */
const maxBatchParts = 256;
/** Time to drain a stream after its end, so that its connection can be reused. */
const leaveMs = 1000;

/** Ends after `finish`, or with the stream. */
export async function* readParts(
  open: (signal: AbortSignal) => PromiseLike<{ readonly stream: ReadableStream<StreamPart> }>,
  limits: PartLimits,
  signal: AbortSignal,
): AsyncGenerator<readonly StreamPart[], void, void> {
  if (signal.aborted) throw callerLeft();
  const inner = new AbortController();
  let why: GatewayError | undefined;
  let interrupt: ((why: GatewayError) => void) | undefined;
  let reader: ReadableStreamDefaultReader<StreamPart> | undefined;
  let isFinished = false;

  function cut(reason: GatewayError): void {
    why ??= reason;
    interrupt?.(why);
    inner.abort();
  }

  /** Does not wait for a provider that is slow to notice an abort. */
  function wait<Value>(pending: PromiseLike<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      interrupt = reject;
      pending.then(resolve, reject);
      if (why !== undefined) reject(why);
    });
  }

  const watch = createWatch(limits.totalMs, (limit, limitMs) => cut(toLateness(limit, limitMs, limits.address)));
  const leave = () => cut(callerLeft());
  signal.addEventListener("abort", leave);
  try {
    watch.enter("first_byte", limits.firstByteMs);
    reader = checkStream(await wait(open(inner.signal))).getReader();
    let received = false;
    let pending = read(reader);
    while (!isFinished) {
      let step: Step | undefined = await wait(pending);
      if (step.done) return;
      const batch: StreamPart[] = [];
      while (step?.done === false) {
        const part = checkPart(step.value);
        batch.push(part);
        isFinished = part.type === "finish";
        if (isFinished) break;
        pending = read(reader);
        step = batch.length < maxBatchParts ? await arrived(pending) : undefined;
      }
      // `stream-start` precedes anything from the other side.
      received ||= batch.some((part) => part.type !== "stream-start");
      watch.rest();
      yield batch;
      if (received) watch.enter("idle", limits.idleMs);
      else watch.enter("first_byte", limits.firstByteMs);
    }
  } catch (thrown) {
    throw why ?? thrown;
  } finally {
    signal.removeEventListener("abort", leave);
    if (isFinished && reader !== undefined) {
      watch.enter("leave", leaveMs);
      void drain(reader).then(() => watch.stop());
    } else {
      watch.stop();
      inner.abort();
      reader?.cancel().catch(() => {});
    }
  }
}

type Read = ReturnType<ReadableStreamDefaultReader<StreamPart>["read"]>;
type Step = Awaited<Read>;

function read(reader: ReadableStreamDefaultReader<StreamPart>): Read {
  const pending = reader.read();
  // A failure reaches whoever awaits it; until then there may be nobody.
  pending.catch(() => {});
  return pending;
}

/** The next part, if it came in the same network read as the last. */
async function arrived(pending: Read): Promise<Step | undefined> {
  return await Promise.race([pending.catch(() => undefined), breathe(undefined)]);
}

async function drain(reader: ReadableStreamDefaultReader<StreamPart>): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // Nobody listens any more.
  }
}
