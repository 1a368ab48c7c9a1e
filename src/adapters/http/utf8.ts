/** Makes text of bytes. Those that are not UTF-8 are none, and a character put in place of a broken one would be invented. */
import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../core/errors.ts";
import { type Scrub, createScrubber, excerpt } from "./refusal.ts";

/** `scrub` takes secrets out of what is told of them in the log. */
export function decodeUtf8(bytes: Buffer, scrub: Scrub = createScrubber([])): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new GatewayError("adapter_protocol", "The upstream answered with bytes that are not UTF-8.", {
    cause: new Error(`They begin: ${excerpt(bytes.toString("utf8", 0, 8192), 200, scrub)}`),
  });
}

/** A mark of the byte order may stand at the very beginning of what somebody sends, and is no part of it. */
export function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}
