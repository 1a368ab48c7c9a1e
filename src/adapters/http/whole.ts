/** Reads the text of an answer to its end, within a bound; or only as much of it as comes soon. */
import { GatewayError } from "../../core/errors.ts";
import { createGathering } from "../gathering.ts";
import type { Scrub } from "./refusal.ts";
import type { UpstreamResponse } from "./upstream.ts";
import { decodeUtf8, withoutMark } from "./utf8.ts";

export async function readWhole(response: UpstreamResponse, maxBytes: number, scrub?: Scrub): Promise<string> {
  const gathered = createGathering();
  for (;;) {
    const batch = await response.pull();
    if (batch === undefined) break;
    for (const buffer of batch) gathered.add(buffer);
    if (gathered.size() > maxBytes) {
      throw new GatewayError("adapter_protocol", `The upstream's answer is larger than ${maxBytes} bytes.`, {
        wireCode: "adapter_answer_too_large",
      });
    }
  }
  return withoutMark(decodeUtf8(gathered.take(), scrub));
}

/** How long to wait for a body that only explains its head. */
const startMs = 300;
const maxStartBytes = 64 * 1024;

/** The beginning of a body that explains its head, which is worth reporting even if the body never ends, or breaks. */
export async function readStart(response: UpstreamResponse): Promise<string> {
  const gathered = createGathering();
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, startMs, undefined);
  try {
    while (gathered.size() < maxStartBytes) {
      const batch = await Promise.race([response.pull().catch(() => undefined), late.promise]);
      if (batch === undefined) break;
      for (const buffer of batch) gathered.add(buffer);
    }
  } finally {
    clearTimeout(timer);
  }
  return new TextDecoder().decode(gathered.take().subarray(0, maxStartBytes));
}
