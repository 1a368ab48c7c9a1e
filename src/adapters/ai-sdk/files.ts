/** Gets the content of images and files: of data: URLs, and of other URLs that the model does not take. */
import type { Tell } from "../../core/adapter.ts";
import type { Item, Part } from "../../core/item.ts";
import { about, type Media, type MediaRules, readDataUrl, refuseMedia } from "../media/media.ts";
import type { Model, SupportedUrls } from "./provider.ts";

/** By URL; undefined: it can no longer be fetched. */
export type Files = ReadonlyMap<string, Media | undefined>;

/**
 * What the caller has just sent must be there, or the turn is refused. Of anything older that is gone the caller is
 * told, so that a picture that its server has removed does not end a conversation.
 */
export async function fetchFiles(
  items: readonly Item[],
  model: Model,
  rules: MediaRules,
  tell: Tell,
  signal: AbortSignal,
): Promise<Files> {
  const supported = (await model.supportedUrls) ?? {};
  const newest = items.findLastIndex((item) => item.type === "message" && item.role === "assistant") + 1;
  const files = new Map<string, Media | undefined>();
  const reading: Promise<void>[] = [];
  let left = maxCount;

  async function get(url: string, part: Part, isNew: boolean): Promise<void> {
    try {
      files.set(url, await read(url, () => left-- > 0, rules, signal));
    } catch (thrown) {
      if (isNew) throw about(part, thrown);
      tell({ type: "left-out", what: `file from ${URL.parse(url)?.host || "a data: URL"}` });
    }
  }

  // Those of the newest are the last of which there may be too many.
  for (let at = items.length - 1; at >= 0; at--) {
    for (const part of partsOf(items[at])) {
      const url = sourceOf(part);
      if (url === undefined || files.has(url) || !isUrl.test(url) || isTaken(typeOf(part), url, supported)) continue;
      files.set(url, undefined);
      reading.push(get(url, part, at >= newest));
    }
  }
  await Promise.all(reading);
  return files;
}

/** The most that are fetched for one turn. */
const maxCount = 16;

const isUrl = /^(data|https?):/i;

async function read(url: string, mayFetch: () => boolean, rules: MediaRules, signal: AbortSignal): Promise<Media> {
  if (/^data:/i.test(url)) return readDataUrl(url, rules);
  if (!rules.enabled)
    throw refuseMedia("it", "is given by a URL, which the model does not take: send its content, as a data: URL");
  if (!mayFetch()) throw refuseMedia("the request", `has more than ${maxCount} URLs to fetch`);
  const { fetchMedia } = await import("../media/fetch.ts");
  return fetchMedia(url, rules, signal);
}

function partsOf(item: Item | undefined): readonly Part[] {
  const content = item?.type === "message" ? item.content : item?.type === "tool-output" ? item.output : "";
  return typeof content === "string" ? [] : content;
}

/** A URL, or plain base64. */
export function sourceOf(part: Part): string | undefined {
  return part.type === "image" ? part.url : part.type === "file" ? (part.data ?? part.url) : undefined;
}

/** As far as it is known without its content. */
export function typeOf(part: Part): string {
  if (part.type === "image") return "image/*";
  // `%PDF-` in base64.
  const isPdf =
    part.type === "file" && (part.data?.startsWith("JVBERi0") || /\.pdf$/i.test(part.name ?? part.url ?? ""));
  return isPdf === true ? "application/pdf" : "application/octet-stream";
}

/** As specified: types like `image/*` or `*`, each with its URLs. */
function isTaken(type: string, url: string, supported: SupportedUrls): boolean {
  return Object.entries(supported).some(([key, patterns]) => {
    const [start = ""] = key.toLowerCase().split("*", 1);
    const fits = key.includes("*") ? type.startsWith(start) : type === key.toLowerCase();
    return fits && patterns.some((pattern) => url.search(pattern) !== -1);
  });
}
