/** Decodes bytes as UTF-8, without a byte order mark; refuses others, as a replacement character would be invented. */
import { GatewayError } from "../../core/errors.ts";
import { type Scrub, createScrubber, excerpt } from "./refusal.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

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
