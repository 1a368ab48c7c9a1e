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

export function checkSize(bytes: number, where: string, { max_bytes: maxBytes }: MediaRules): void {
  if (bytes > maxBytes) throw refuseMedia(where, `is larger than ${maxBytes} bytes`);
}

/** Media within a data: URL; only base64 is used for them. */
export function readDataUrl(url: string, rules: MediaRules): Media {
  const where = "the data: URL";
  const [, header = "", written] = /^data:([^,]*);\s*base64\s*,(.*)$/is.exec(url) ?? [];
  if (written === undefined) throw refuseMedia(where, "is not in base64");
  const type = readType(header, where);
  // Four characters are three bytes.
  checkSize(Math.floor((written.length / 4) * 3) - 2, where, rules);
  if (!/^[\w+/\s-]*={0,2}\s*$/.test(written)) throw refuseMedia(where, "claims to be base64, but is not");
  return { bytes: Buffer.from(written, "base64"), type };
}
