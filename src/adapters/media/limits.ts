/** The limits on media (size, time, type and origin), and how media beyond them are refused. */
import { GatewayError } from "../../core/errors.ts";
import type { Part } from "../../core/item.ts";

export interface MediaLimits {
  /** The part that names or holds the media, for a refusal to point to. */
  readonly part?: Part | undefined;
  readonly maxBytes: number;
  /** For all hops together. */
  readonly timeoutMs: number;
  /** Private addresses and networks (`10.1.0.0/16`) that may be reached; true: all. */
  readonly allowPrivate: boolean | readonly string[];
}

export interface Media {
  readonly bytes: Uint8Array;
  /** Without parameters, in lower case: `image/png`. */
  readonly type: string;
}

/** A refusal that names the origin of the media, and nothing else of its URL. */
export function refuseMedia(where: string, why: string, limits: MediaLimits, cause?: unknown): GatewayError {
  const { part } = limits;
  return new GatewayError("invalid_value", `A file cannot be used: ${where} ${why}.`, { part, cause });
}

/** The type from a header or a data: URL, if models can read such media. */
export function readType(header: string, where: string, limits: MediaLimits): string {
  const [essence = ""] = header.split(";", 1);
  const type = essence.trim().toLowerCase();
  if (/^(image|audio|video|text)\/(\*|[\w.+-]{1,100})$/.test(type) || type === "application/pdf") return type;
  const found = /^[\w.+/-]{1,100}$/.test(type) ? `is of type ${type}` : "does not say what type it is";
  throw refuseMedia(where, `${found}; allowed are images, audio, video, text and PDF`, limits);
}

export function tooLarge(where: string, limits: MediaLimits): GatewayError {
  return refuseMedia(where, `is larger than ${limits.maxBytes} bytes`, limits);
}
