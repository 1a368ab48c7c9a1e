/** Runs scripted deltas through the chat dialect. */
import { createChatProtocol } from "../../../src/protocols/chat/index.ts";
import type { WireCompletion } from "../chunks.ts";
import { type Batches, type Played, playWith } from "../script.ts";

export const protocol = createChatProtocol({ exposeReasoning: false });

/** `failure` is thrown after the last batch. */
export function play(batches: Batches, body: object = {}, failure?: Error): Promise<Played<WireCompletion>> {
  const messages = [{ role: "user", content: "Hi" }];
  return playWith(protocol.parse({ model: "some-model", messages, ...body }, "default").voice, batches, failure);
}
