/** Writes contents as parts: text as it is, everything else as a file with its media type. */
import type { LanguageModelV3FilePart, LanguageModelV3TextPart } from "@ai-sdk/provider";
import { GatewayError } from "../../core/errors.ts";
import type { Content, Part } from "../../core/item.ts";
import { refusePart } from "../failures.ts";
import { readDataUrl } from "../media/data-url.ts";
import type { MediaLimits } from "../media/limits.ts";

export type WrittenPart = LanguageModelV3TextPart | LanguageModelV3FilePart;

/** Some providers refuse empty texts, so they are left out. */
export function writeContent(content: Content, limits: MediaLimits): WrittenPart[] {
  if (typeof content === "string") return writeText(content);
  return content.flatMap((part) => writePart(part, limits));
}

function writePart(part: Part, limits: MediaLimits): WrittenPart[] {
  switch (part.type) {
    case "text":
    case "refusal":
      return writeText(part.text);
    case "image":
      return [writeFile(part.url ?? refuseId(part), undefined, "image/*", { ...limits, part })];
    case "audio":
      return [{ type: "file", mediaType: `audio/${part.format === "mp3" ? "mpeg" : part.format}`, data: part.data }];
    case "file":
      return [
        writeFile(part.data ?? part.url ?? refuseId(part), part.name, "application/octet-stream", { ...limits, part }),
      ];
    case "other":
      return refusePart(part);
  }
}

function writeText(text: string): WrittenPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** `source` is a data: URL, another URL, or plain base64. */
function writeFile(source: string, name: string | undefined, otherwise: string, limits: MediaLimits): WrittenPart {
  const named = { type: "file", filename: name } as const;
  if (/^data:/i.test(source)) {
    const { bytes, type } = readDataUrl(source, limits, (declared) => toMediaType(declared, name, otherwise));
    return { ...named, mediaType: type, data: bytes };
  }
  if (/^https?:\/\//i.test(source) && URL.canParse(source)) {
    const url = new URL(source);
    return { ...named, mediaType: toMediaType("", name ?? url.pathname, otherwise), data: url };
  }
  const isPdf = source.startsWith(pdfStart);
  return { ...named, mediaType: toMediaType(isPdf ? "application/pdf" : "", name, otherwise), data: source };
}

/** `%PDF-` in base64. */
const pdfStart = "JVBERi0";

/** Every provider that reads text at all knows text/plain. */
function toMediaType(type: string, name: string | undefined, otherwise: string): string {
  const ending = /\.(\w+)$/.exec(name ?? "")?.[1]?.toLowerCase() ?? "";
  const found = type === "" || type === "application/octet-stream" ? (typeOfEnding.get(ending) ?? otherwise) : type;
  return found.startsWith("text/") || /^application\/([\w.-]+\+)?(json|xml|yaml)$/.test(found) ? "text/plain" : found;
}

const typeOfEnding: ReadonlyMap<string, string> = new Map([
  ["pdf", "application/pdf"],
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["mp3", "audio/mpeg"],
  ["wav", "audio/wav"],
  ["mp4", "video/mp4"],
  ...["txt", "md", "csv", "json", "xml", "yaml", "yml", "html", "log"].map((ending) => [ending, "text/plain"] as const),
]);

function refuseId(part: Part): never {
  throw new GatewayError(
    "unsupported_parameter",
    `This gateway's adapter does not support uploaded files, so it cannot use the ${part.type} by its file id. Send its content, or a URL.`,
    { part },
  );
}
