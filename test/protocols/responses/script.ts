/** Plays scripted deltas and says them in the responses dialect. */
import { createResponsesProtocol } from "../../../src/protocols/responses/index.ts";
import { createSeal } from "../../../src/seal.ts";
import type { WireResponse } from "../grammar.ts";
import { type Batches, type Played, playWith } from "../script.ts";

export { about } from "../script.ts";

export const seal = createSeal(new Uint8Array(32).fill(7));

export const protocol = createResponsesProtocol({ seal });

/** `failure` is thrown after the last batch. */
export function play(batches: Batches, body: object = {}, failure?: Error): Promise<Played<WireResponse>> {
  return playWith(protocol.parse({ model: "some-model", input: "Hi", ...body }).voice, batches, failure);
}
