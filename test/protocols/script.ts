/** Runs scripted deltas through the frame of a turn and a dialect, streamed and whole. */
import type { Delta } from "../../src/core/delta.ts";
import { toGatewayError } from "../../src/core/errors.ts";
import { frame } from "../../src/core/frame/frame.ts";
import type { About, Voice } from "../../src/core/ports.ts";
import type { Answer } from "../../src/core/turn.ts";

export type Batches = readonly (readonly Delta[])[];

export const about: About = {
  id: "resp_ab12",
  createdAt: new Date(1_700_000_000_400),
  model: "some-model",
  session: undefined,
  history: "new",
  contextItems: 1,
  omittedItems: 0,
  truncation: "disabled",
  remarks: [],
};

const endedAt = new Date(1_700_000_009_900);

export interface Played<Body> {
  /** The stream, one string per write. */
  readonly writes: readonly string[];
  readonly stream: string;
  readonly answer: Answer;
  /** The same answer whole. */
  whole(): Body;
}

/** `failure` is thrown after the last batch. */
export async function playWith<Body>(voice: Voice, batches: Batches, failure?: Error): Promise<Played<Body>> {
  const write = voice.stream(about);
  const writes: string[] = [];
  let answer: Answer | undefined;
  const ending = { settle: async () => {}, explain: toGatewayError, end: () => {}, now: () => endedAt };
  for await (const events of frame(about.id, say(batches, failure), ending)) {
    writes.push(write(events));
    const last = events.at(-1);
    if (last?.type === "turn-end") answer = last.answer;
  }
  if (answer === undefined) throw new Error("The turn has no end.");
  const finished = answer;
  return { writes, stream: writes.join(""), answer: finished, whole: () => JSON.parse(voice.whole(about, finished)) };
}

async function* say(batches: Batches, failure: Error | undefined) {
  yield* batches;
  if (failure !== undefined) throw failure;
}
