/** Decodes bytes as UTF-8 and refuses any others: a replacement character would be an invented one. */
import { isUtf8 } from "node:buffer";
import { GatewayError } from "../../core/errors.ts";
import { type Scrub, createScrubber, excerpt } from "./refusal.ts";

/** `scrub` removes secrets from the excerpt for the log. */
export function decodeUtf8(bytes: Buffer, scrub: Scrub = createScrubber([])): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new GatewayError("adapter_protocol", "The upstream answered with bytes that are not UTF-8.", {
    cause: new Error(`They begin: ${excerpt(bytes.toString("utf8", 0, 8192), 200, scrub)}`),
  });
}

/** Removes a byte order mark at the very beginning: it is not part of the text. */
export function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}
