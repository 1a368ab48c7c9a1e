/** Reads the parts of a model's stream, in batches. */
import { setImmediate as breathe } from "node:timers/promises";
import { checkPart, checkStream } from "./check.ts";
import type { StartPart, StreamPart } from "./spec.ts";

/** The most parts in a batch, so that a burst cannot hold up other turns. */
const maxBatchParts = 256;
/** Time to drain a stream after its end, so that its connection can be reused. */
const leaveMs = 1000;

/** Ends after `finish`, or with the stream. The opening part precedes anything from the other side, so `begin` gets it. */
export async function* readParts(
  open: (signal: AbortSignal) => PromiseLike<{ readonly stream: ReadableStream<StreamPart> }>,
  begin: (part: StartPart) => void,
  signal: AbortSignal,
): AsyncGenerator<readonly StreamPart[], void, void> {
  const leaving = new AbortController();
  const either = AbortSignal.any([signal, leaving.signal]);
  const reader = checkStream(await open(either)).getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  if (either.aborted) cancel();
  either.addEventListener("abort", cancel);
  let batch: StreamPart[] = [];
  let pending = read(reader);
  for (;;) {
    const isFull = batch.length >= maxBatchParts;
    const step = isFull ? undefined : await (batch.length > 0 ? arrived(pending) : pending);
    if (step === undefined) {
      yield batch;
      batch = [];
      continue;
    }
    if (step.done) break;
    const part = checkPart(step.value);
    if (part.type === "stream-start") begin(part);
    else batch.push(part);
    if (part.type === "finish") {
      void drain(reader, leaving);
      break;
    }
    pending = read(reader);
  }
  yield batch;
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

async function drain(reader: ReadableStreamDefaultReader<StreamPart>, leaving: AbortController): Promise<void> {
  const timer = setTimeout(() => leaving.abort(), leaveMs);
  try {
    while (!(await reader.read()).done);
  } catch {
    // Nobody listens any more.
  } finally {
    clearTimeout(timer);
  }
}
