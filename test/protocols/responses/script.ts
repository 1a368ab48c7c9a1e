/** Plays scripted deltas through the frame of a turn, and says them in the responses dialect. */
import type { Delta } from "../../../src/core/delta.ts";
import { toGatewayError } from "../../../src/core/errors.ts";
import { frame } from "../../../src/core/frame.ts";
import type { About } from "../../../src/core/ports.ts";
import type { Answer } from "../../../src/core/turn.ts";
import { createResponsesProtocol } from "../../../src/protocols/responses/index.ts";
import type { WireResponse } from "../grammar.ts";

export const protocol = createResponsesProtocol({ now: () => new Date(1_700_000_009_900) });

export const about: About = {
  id: "resp_ab12",
  createdAt: new Date(1_700_000_000_400),
  model: "some-model",
  session: undefined,
  history: "new",
  contextItems: 1,
};

export interface Played {
  /** The stream, one string a write. */
  readonly writes: readonly string[];
  readonly stream: string;
  readonly answer: Answer;
  /** The same answer said whole. */
  whole(): WireResponse;
}

/** `failure` is thrown after the last batch. */
export async function play(
  batches: readonly (readonly Delta[])[],
  body: object = {},
  failure?: Error,
): Promise<Played> {
  const { voice } = protocol.parse({ model: "some-model", input: "Hi", ...body });
  const speak = voice.stream(about);
  const writes: string[] = [];
  let answer: Answer | undefined;
  const ending = { settle: async () => {}, explain: toGatewayError, leave: () => {} };
  for await (const events of frame(about.id, say(batches, failure), ending)) {
    writes.push(speak(events));
    const last = events.at(-1);
    if (last?.type === "turn-end") answer = last.answer;
  }
  if (answer === undefined) throw new Error("The turn has no end.");
  const told = answer;
  return { writes, stream: writes.join(""), answer: told, whole: () => JSON.parse(voice.whole(about, told)) };
}

async function* say(batches: readonly (readonly Delta[])[], failure: Error | undefined) {
  yield* batches;
  if (failure !== undefined) throw failure;
}
