/** Puts the content of files in place of their URLs, where the model does not take these. */
import type { LanguageModelV3FilePart, LanguageModelV3Prompt } from "@ai-sdk/provider";
import type { Tell } from "../../core/adapter.ts";
import type { Part } from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";
import { about, type Media, type MediaRules, refuseMedia } from "../media/media.ts";
import type { Model, SupportedUrls } from "./provider.ts";

/** The most that are fetched for one turn. */
const maxCount = 16;

/**
 * What the caller has just sent must be there, or the turn is refused. Of anything older that is gone the caller is
 * told, so that a picture that its server has removed does not end a conversation.
 */
export async function fetchFiles(
  prompt: LanguageModelV3Prompt,
  turn: Turn,
  model: Model,
  rules: MediaRules,
  tell: Tell,
  signal: AbortSignal,
): Promise<LanguageModelV3Prompt> {
  const supported = (await model.supportedUrls) ?? {};
  const isNeeded = (part: unknown): part is UrlPart => isUrlPart(part) && !isTaken(part, supported);
  const newest = prompt.findLastIndex(({ role }) => role === "assistant") + 1;
  const urlsOf = (messages: LanguageModelV3Prompt): string[] =>
    messages.flatMap<unknown>(({ content }) => content).flatMap((part) => (isNeeded(part) ? part.data.href : []));
  const newer = new Set(urlsOf(prompt.slice(newest)));
  const urls = new Set([...newer, ...urlsOf(prompt.slice(0, newest)).toReversed()]);
  if (urls.size === 0) return prompt;
  const parts = partsByUrl(turn);
  const found = new Map<string, Media>();

  async function find(url: string, place: number): Promise<void> {
    try {
      found.set(url, await read(url, place, rules, signal));
    } catch (thrown) {
      if (newer.has(url)) throw about(parts.get(url), thrown);
    }
  }

  function fill<Given>(part: Given) {
    if (!isNeeded(part)) return part;
    const media = found.get(part.data.href);
    if (media !== undefined) return { ...part, mediaType: media.type, data: media.bytes };
    tell({ type: "left-out", what: `file from ${part.data.host}` });
    return { type: "text", text: "[The file that was here can no longer be fetched.]" } as const;
  }

  await Promise.all(Array.from(urls, find));
  return prompt.map((message) => {
    if (message.role === "user") return { ...message, content: message.content.map(fill) };
    return message.role === "assistant" ? { ...message, content: message.content.map(fill) } : message;
  });
}

async function read(url: string, place: number, rules: MediaRules, signal: AbortSignal): Promise<Media> {
  if (place >= maxCount) throw refuseMedia("the request", `has more than ${maxCount} URLs to fetch`);
  if (!rules.enabled)
    throw refuseMedia("it", "is given by a URL, which the model does not take: send its content, as a data: URL");
  const { fetchMedia } = await import("../media/fetch.ts");
  return fetchMedia(url, rules, signal);
}

type UrlPart = LanguageModelV3FilePart & { readonly data: URL };

function isUrlPart(part: unknown): part is UrlPart {
  return typeof part === "object" && part !== null && "data" in part && part.data instanceof URL;
}

/** As specified: types like `image/*` or `*`, each with its URLs. */
function isTaken({ mediaType, data }: UrlPart, supported: SupportedUrls): boolean {
  return Object.entries(supported).some(([key, patterns]) => {
    const [start = ""] = key.toLowerCase().split("*", 1);
    const fits = key.includes("*") ? mediaType.startsWith(start) : mediaType === key.toLowerCase();
    return fits && patterns.some((pattern) => data.href.search(pattern) !== -1);
  });
}

/** The newest part of each URL. */
function partsByUrl({ items }: Turn): ReadonlyMap<string, Part> {
  const parts = new Map<string, Part>();
  for (const item of items) {
    const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
    for (const part of typeof content === "string" ? [] : content) {
      const source = part.type === "image" ? part.url : part.type === "file" ? (part.data ?? part.url) : undefined;
      const url = /^https?:/i.test(source ?? "") ? URL.parse(source ?? "") : null;
      if (url !== null) parts.set(url.href, part);
    }
  }
  return parts;
}
