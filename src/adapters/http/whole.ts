/** Reads an answer to its end, within a bound. */
import { GatewayError } from "../../core/errors.ts";
import type { UpstreamResponse } from "./upstream.ts";

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
  return pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces, bytes);
}
