/** What models may be shown beside text, and how anything else is refused. */
import { GatewayError } from "../../core/errors.ts";
import { type Part, place } from "../../core/item.ts";

export interface MediaRules {
  /** Otherwise nothing is fetched. */
  readonly enabled: boolean;
  readonly max_bytes: number;
  /** For fetching one, with all redirects. */
  readonly timeout_ms: number;
  /** Private addresses and networks (`10.1.0.0/16`) that may be reached. */
  readonly allow_private: readonly string[];
}

export interface Media {
  readonly bytes: Uint8Array;
  /** Without parameters, in lower case: `image/png`. */
  readonly type: string;
}

/** Names where the media are from, and nothing else of their URL. */
export function refuseMedia(where: string, why: string, cause?: unknown): GatewayError {
  return new GatewayError("invalid_value", `A file cannot be used: ${where} ${why}.`, { cause });
}

/** The failure with the path of the part that it is about. */
export function about(part: Part | undefined, thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError)) return thrown;
  return new GatewayError(thrown.code, thrown.message, { param: part?.[place], cause: thrown.cause });
}

/** The type from a header or a data: URL, if models can read such media. */
export function readType(header: string, where: string): string {
  const [essence = ""] = header.split(";", 1);
  const type = essence.trim().toLowerCase();
  if (/^(image|audio|video|text)\/(\*|[\w.+-]{1,100})$/.test(type) || type === "application/pdf") return type;
  const found = /^[\w.+/-]{1,100}$/.test(type) ? `is of type ${type}` : "does not say what type it is";
  throw refuseMedia(where, `${found}; allowed are images, audio, video, text and PDF`);
}

export function tooLarge(where: string, { max_bytes: maxBytes }: MediaRules): GatewayError {
  return refuseMedia(where, `is larger than ${maxBytes} bytes`);
}

/** Media within a data: URL; only base64 is used for them. */
export function readDataUrl(url: string, rules: MediaRules): Media {
  const where = "the data: URL";
  const [, header = "", written] = /^data:([^,]*);\s*base64\s*,(.*)$/is.exec(url) ?? [];
  if (written === undefined) throw refuseMedia(where, "is not in base64");
  const type = readType(header, where);
  const bytes = Buffer.from(written, "base64");
  if (bytes.length > rules.max_bytes) throw tooLarge(where, rules);
  return { bytes, type };
}
