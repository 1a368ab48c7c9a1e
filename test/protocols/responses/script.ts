/** Plays scripted deltas and says them in the responses dialect. */
import { createResponsesProtocol } from "../../../src/protocols/responses/index.ts";
import type { WireResponse } from "../grammar.ts";
import { type Batches, type Played, playWith } from "../script.ts";

export { about } from "../script.ts";

export const protocol = createResponsesProtocol({ now: () => new Date(1_700_000_009_900) });

/** `failure` is thrown after the last batch. */
export function play(batches: Batches, body: object = {}, failure?: Error): Promise<Played<WireResponse>> {
  return playWith(protocol.parse({ model: "some-model", input: "Hi", ...body }).voice, batches, failure);
}
