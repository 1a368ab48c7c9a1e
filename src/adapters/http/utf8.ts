/** Decodes bytes as UTF-8 and refuses any others: a replacement character would be an invented one. */
import { GatewayError } from "../../core/errors.ts";
import { type Scrub, createScrubber, excerpt } from "./refusal.ts";

// A byte order mark stays: only the very first one is none of the text.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** `scrub` removes secrets from the excerpt for the log. */
export function decodeUtf8(bytes: Buffer, scrub: Scrub = createScrubber([])): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new GatewayError("adapter_protocol", "The upstream answered with bytes that are not UTF-8.", {
      cause: new Error(`They begin: ${excerpt(bytes.toString("utf8", 0, 8192), 200, scrub)}`),
    });
  }
}

/** Removes a byte order mark at the very beginning: it is not part of the text. */
export function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}
