/** Pulls the parts of a model's stream, in batches, within time limits; an abort or a deadline ends it at once. */
import { setImmediate as breathe } from "node:timers/promises";
import { toLateness } from "../http/failure.ts";
import type { AnswerLimits } from "../type.ts";
import { createWaiting } from "../waiting.ts";
import { checkPart, checkStream } from "./check.ts";
import type { StreamPart } from "./spec.ts";

export interface PartLimits extends Omit<AnswerLimits, "totalMs"> {
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
  const { firstByteMs, idleMs, totalMs, address } = limits;
  const waiting = createWaiting(signal, totalMs, (limit, limitMs) => toLateness(limit, limitMs, address));
  const { watch } = waiting;
  let reader: ReadableStreamDefaultReader<StreamPart> | undefined;
  let isFinished = false;
  try {
    watch.enter("first_byte", firstByteMs);
    reader = checkStream(await waiting.for(open(waiting.signal))).getReader();
    let received = false;
    let pending = read(reader);
    while (!isFinished) {
      let step: Step | undefined = await waiting.for(pending);
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
      if (received) watch.enter("idle", idleMs);
      else watch.enter("first_byte", firstByteMs);
    }
  } catch (thrown) {
    throw waiting.why() ?? thrown;
  } finally {
    waiting.leave();
    if (isFinished && reader !== undefined) {
      watch.enter("leave", leaveMs);
      void drain(reader).then(() => watch.stop());
    } else {
      watch.stop();
      waiting.abort();
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
