/** Writes contents as parts: text as it is, everything else as a file with its media type. */
import type { LanguageModelV3FilePart, LanguageModelV3TextPart } from "@ai-sdk/provider";
import { GatewayError } from "../../core/errors.ts";
import type { Content, Part } from "../../core/item.ts";
import { textAt } from "./json.ts";

export type WrittenPart = LanguageModelV3TextPart | LanguageModelV3FilePart;

/** Some providers refuse empty texts, so they are left out. */
export function writeContent(content: Content): WrittenPart[] {
  if (typeof content === "string") return writeText(content);
  return content.flatMap(writePart);
}

export function writePart(part: Part): WrittenPart[] {
  switch (part.type) {
    case "text":
    case "refusal":
      return writeText(part.text);
    case "image":
      return [writeFile(part.url ?? refuseId("image"), undefined, "image/*")];
    case "audio":
      return [{ type: "file", mediaType: audioTypes.get(part.format) ?? `audio/${part.format}`, data: part.data }];
    case "file":
      return [writeFile(part.data ?? part.url ?? refuseId("file"), part.name, "application/octet-stream")];
    case "other":
      throw new GatewayError(
        "unsupported_parameter",
        `This gateway's adapter takes no content of type '${textAt(part.extra.fields, "type") ?? "unknown"}'. Leave that part out, or send it as text, an image, audio or a file.`,
      );
  }
}

function writeText(text: string): WrittenPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}

/** `source` is a data: URL, another URL, or plain base64. Whether a URL can be fetched is the provider's to say. */
function writeFile(source: string, name: string | undefined, otherwise: string): WrittenPart {
  const named = { type: "file", filename: name } as const;
  const inline = /^data:([^,]*),/.exec(source);
  if (inline !== null) {
    const [head, parameters = ""] = inline;
    const body = source.slice(head.length);
    const [type = ""] = parameters.split(";", 1);
    const data = parameters.endsWith(";base64") ? body : toBase64(body);
    return { ...named, mediaType: toMediaType(type.toLowerCase(), name, otherwise), data };
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

/** Every provider that reads texts at all knows the plain ones. */
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

const audioTypes: ReadonlyMap<string, string> = new Map([["mp3", "audio/mpeg"]]);

/** A data: URL may also be written in plain characters. */
function toBase64(encoded: string): string {
  try {
    return Buffer.from(decodeURIComponent(encoded)).toString("base64");
  } catch {
    return Buffer.from(encoded).toString("base64");
  }
}

function refuseId(what: string): never {
  throw new GatewayError(
    "unsupported_parameter",
    `This gateway's adapter knows no uploaded files, so it cannot take the ${what} by its file id. Send its content, or a URL.`,
  );
}
