/** Reads the text of an answer to its end, within a bound; or only as much of it as comes soon. */
import { GatewayError } from "../../core/errors.ts";
import type { UpstreamResponse } from "./upstream.ts";
import { requireUtf8 } from "./utf8.ts";

export async function readWhole(response: UpstreamResponse, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for (;;) {
    const batch = await response.pull();
    if (batch === undefined) break;
    for (const buffer of batch) {
      bytes += buffer.length;
      pieces.push(buffer);
    }
    if (bytes > maxBytes) {
      throw new GatewayError("adapter_protocol", `The upstream's answer is larger than ${maxBytes} bytes.`, {
        wireCode: "adapter_answer_too_large",
      });
    }
  }
  const [only] = pieces;
  const whole = pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces, bytes);
  requireUtf8(whole);
  return whole;
}

/** So long for what an upstream adds to a head that has said enough. */
const startMs = 300;
const maxStartBytes = 64 * 1024;

/** The beginning of a body that explains its head. Its head is worth telling even if the body never ends, or breaks. */
export async function readStart(response: UpstreamResponse): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(late.resolve, startMs, undefined);
  try {
    while (bytes < maxStartBytes) {
      const batch = await Promise.race([response.pull().catch(() => undefined), late.promise]);
      if (batch === undefined) break;
      for (const buffer of batch) {
        bytes += buffer.length;
        pieces.push(buffer);
      }
    }
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(pieces).subarray(0, maxStartBytes);
}
