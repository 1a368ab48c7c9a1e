/** Gets the content of images and files: of data: URLs, and of other URLs that the model does not take. */
import type { Item, Part } from "../../core/item.ts";
import { about, type Media, type MediaRules, readDataUrl, refuseMedia } from "../media/media.ts";
import type { Model, SupportedUrls } from "./provider.ts";

/** By URL. */
export type Files = ReadonlyMap<string, Media>;

/** The most that are fetched for one turn. */
const maxCount = 100;

export async function fetchFiles(
  items: readonly Item[],
  model: Model,
  rules: MediaRules,
  signal: AbortSignal,
): Promise<Files> {
  const supported = (await model.supportedUrls) ?? {};
  const wanted = new Map<string, Part>();
  for (const part of items.flatMap(partsOf)) {
    const url = sourceOf(part);
    if (url !== undefined && isUrl.test(url) && !isTaken(typeOf(part), url, supported)) wanted.set(url, part);
  }
  let left = maxCount;
  const reading = Array.from(wanted, async ([url, part]) => {
    try {
      if (/^data:/i.test(url)) return [url, readDataUrl(url, rules)] as const;
      left -= 1;
      if (left < 0) throw refuseMedia("the request", `has more than ${maxCount} URLs to fetch`);
      return [url, await fetchUrl(url, rules, signal)] as const;
    } catch (thrown) {
      throw about(part, thrown);
    }
  });
  return new Map(await Promise.all(reading));
}

const isUrl = /^[a-z][a-z\d+.-]*:/i;

async function fetchUrl(url: string, rules: MediaRules, signal: AbortSignal): Promise<Media> {
  if (!rules.enabled)
    throw refuseMedia("it", "is given by a URL, which the model does not take: send its content, as a data: URL");
  const { fetchMedia } = await import("../media/fetch.ts");
  return fetchMedia(url, rules, signal);
}

function partsOf(item: Item): readonly Part[] {
  const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
  return typeof content === "string" ? [] : content;
}

/** A URL, or plain base64. */
export function sourceOf(part: Part): string | undefined {
  if (part.type === "image") return part.url;
  return part.type === "audio" ? part.data : part.type === "file" ? (part.data ?? part.url) : undefined;
}

/** As far as it is known without its content. */
export function typeOf(part: Part): string {
  if (part.type === "image") return "image/*";
  if (part.type === "audio") return `audio/${part.format === "mp3" ? "mpeg" : part.format}`;
  const isPdf = part.type === "file" && /\.pdf$/i.test(part.name ?? part.url ?? "");
  return isPdf ? "application/pdf" : "application/octet-stream";
}

/** As specified: types like `image/*` or `*`, each with its URLs. */
function isTaken(type: string, url: string, supported: SupportedUrls): boolean {
  return Object.entries(supported).some(([key, patterns]) => {
    const [start = ""] = key.toLowerCase().split("*", 1);
    const fits = key.includes("*") ? type.startsWith(start) : type === key.toLowerCase();
    return fits && patterns.some((pattern) => url.search(pattern) !== -1);
  });
}
