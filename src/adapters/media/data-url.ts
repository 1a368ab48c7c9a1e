/** Reads media contained in a data: URL. */
import { type Media, type MediaLimits, readType, refuseMedia, tooLarge } from "./limits.ts";

const where = "the data: URL";

/** `toType` gets the type that the URL declares, and may know it better, e.g. from the file's name. */
export function readDataUrl(url: string, limits: MediaLimits, toType: (declared: string) => string): Media {
  const comma = url.indexOf(",");
  if (comma === -1) throw refuseMedia(where, "has no comma before its content", limits);
  const header = url.slice("data:".length, comma);
  const [declared = ""] = header.split(";", 1);
  const type = readType(toType(declared.trim().toLowerCase()), where, limits);
  const bytes = /;\s*base64\s*$/i.test(header)
    ? readBase64(url, comma + 1, limits)
    : Buffer.from(unescapePercent(url.slice(comma + 1), limits));
  if (bytes.length > limits.maxBytes) throw tooLarge(where, limits);
  return { bytes, type };
}

function readBase64(url: string, from: number, limits: MediaLimits): Buffer {
  // Checked before it is copied; four characters encode three bytes, and each may be escaped as three.
  if ((url.length - from) / 4 > limits.maxBytes) throw tooLarge(where, limits);
  const written = unescapePercent(url.slice(from), limits).replaceAll(/[\t\n\f\r ]/g, "");
  if (!/^[\w+/-]*={0,2}$/.test(written)) throw refuseMedia(where, "claims to be base64, but is not", limits);
  return Buffer.from(written, "base64");
}

function unescapePercent(text: string, limits: MediaLimits): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw refuseMedia(where, "has invalid percent-encoding", limits, cause);
  }
}
