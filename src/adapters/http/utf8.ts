/** Refuses bytes that are not UTF-8: they are no text, and a character put in place of a broken one would be invented. */
import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../core/errors.ts";
import { type Scrub, createScrubber, excerpt } from "./refusal.ts";

/** `scrub` takes secrets out of what is told of them in the log. */
export function requireUtf8(bytes: Buffer, scrub: Scrub = createScrubber([])): void {
  if (isUtf8(bytes)) return;
  throw new GatewayError("adapter_protocol", "The upstream answered with bytes that are not UTF-8.", {
    cause: new Error(`They begin: ${excerpt(bytes.toString("utf8", 0, 8192), 200, scrub)}`),
  });
}
