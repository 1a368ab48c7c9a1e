/** Runs scripted deltas through the responses dialect. */
import { createResponsesProtocol } from "../../../src/protocols/responses/index.ts";
import { createSeal } from "../../../src/seal.ts";
import type { WireResponse } from "../grammar.ts";
import { type Batches, type Played, playWith } from "../script.ts";

export { about } from "../script.ts";

const sealOf = createSeal(new Uint8Array(32).fill(7));

/** The seal of the requesting owner. */
export const seal = sealOf("default");

export const protocol = createResponsesProtocol({ seal: sealOf });

/** `failure` is thrown after the last batch. */
export function play(batches: Batches, body: object = {}, failure?: Error): Promise<Played<WireResponse>> {
  return playWith(protocol.parse({ model: "some-model", input: "Hi", ...body }, "default").voice, batches, failure);
}
