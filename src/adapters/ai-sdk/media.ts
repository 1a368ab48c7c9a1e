/** Fetches media for models that do not accept their URLs. */
import type { LanguageModelV3FilePart, LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { GatewayError } from "../../core/errors.ts";
import type { Item, Part } from "../../core/item.ts";
import { fetchMedia } from "../media/fetch.ts";
import { type Media, type MediaLimits, refuseMedia } from "../media/limits.ts";
import type { LanguageModel } from "./spec.ts";

export interface MediaRules extends Omit<MediaLimits, "part"> {
  readonly isEnabled: boolean;
  /** The most fetched for one turn. */
  readonly maxCount: number;
}

/**
 * What the caller has just sent must be available, or the turn is refused. Anything older that is gone is left out and
 * reported, so that a picture that its server has removed does not end a conversation.
 */
export async function fetchFiles(
  prompt: LanguageModelV3Prompt,
  items: readonly Item[],
  model: Pick<LanguageModel, "supportedUrls">,
  rules: MediaRules,
  reportOmission: (what: string) => void,
  signal: AbortSignal,
): Promise<LanguageModelV3Prompt> {
  const supported = (await model.supportedUrls) ?? {};
  const answered = prompt.findLastIndex((message) => message.role === "assistant");
  const isNeeded = (part: unknown): part is UrlPart => isUrlPart(part) && !isSupported(part, supported);
  const older = urlsOf(prompt.slice(0, answered + 1), isNeeded);
  const newer = urlsOf(prompt.slice(answered + 1), isNeeded);
  if (older.size + newer.size === 0) return prompt;
  const parts = partsByUrl(items);
  const [excess] = [...newer].slice(rules.maxCount);
  if (excess !== undefined) {
    const part = parts.get(excess);
    throw refuseMedia("the request", `has more than ${rules.maxCount} URLs to fetch (fetch_media.max_count)`, {
      ...rules,
      part,
    });
  }

  const inner = new AbortController();
  const fetchOne = async (url: string) =>
    [url, await fetchUrl(url, parts.get(url), rules, AbortSignal.any([signal, inner.signal]))] as const;
  const room = rules.maxCount - newer.size;
  const wanted = [...older].filter((url) => !newer.has(url)).slice(room === 0 ? older.size : -room);
  try {
    const fetched = await Promise.all([...newer].map(fetchOne));
    const others = await Promise.allSettled(wanted.map(fetchOne));
    signal.throwIfAborted();
    const found = new Map([...fetched, ...others.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))]);
    return prompt.map((message) => withMedia(message, isNeeded, found, reportOmission));
  } finally {
    inner.abort();
  }
}

type UrlPart = LanguageModelV3FilePart & { readonly data: URL };

function isUrlPart(part: unknown): part is UrlPart {
  return typeof part === "object" && part !== null && "data" in part && part.data instanceof URL;
}

/** As specified: types like `image/*` or `*`, each with its URL patterns. */
function isSupported({ mediaType, data }: UrlPart, supported: Readonly<Record<string, readonly RegExp[]>>): boolean {
  return Object.entries(supported).some(([key, patterns]) => {
    const [start = ""] = key.toLowerCase().split("*", 1);
    const fits = key.includes("*") ? mediaType.startsWith(start) : mediaType === key.toLowerCase();
    return fits && patterns.some((pattern) => data.href.search(pattern) !== -1);
  });
}

function urlsOf(messages: LanguageModelV3Prompt, isNeeded: (part: unknown) => part is UrlPart): ReadonlySet<string> {
  const parts = messages.flatMap<unknown>(({ content }) => (typeof content === "string" ? [] : content));
  return new Set(parts.filter(isNeeded).map(({ data }) => data.href));
}

/** The newest part for each URL. Searching for each one separately could take seconds. */
function partsByUrl(items: readonly Item[]): ReadonlyMap<string, Part> {
  const found = new Map<string, Part>();
  for (const item of items) {
    const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
    for (const part of typeof content === "string" ? [] : content) {
      const source = part.type === "image" ? part.url : part.type === "file" ? (part.data ?? part.url) : undefined;
      const url = source !== undefined && /^https?:/i.test(source) ? URL.parse(source) : null;
      if (url !== null) found.set(url.href, part);
    }
  }
  return found;
}

async function fetchUrl(url: string, part: Part | undefined, rules: MediaRules, signal: AbortSignal): Promise<Media> {
  if (rules.isEnabled) return fetchMedia(url, { ...rules, part }, signal);
  throw new GatewayError(
    "invalid_value",
    "The model behind this gateway does not accept an image or file by this URL. Send its content instead, as a data: URL.",
    { part },
  );
}

function withMedia(
  message: LanguageModelV3Message,
  isNeeded: (part: unknown) => part is UrlPart,
  found: ReadonlyMap<string, Media>,
  reportOmission: (what: string) => void,
): LanguageModelV3Message {
  const fill = <Given>(part: Given) => {
    if (!isNeeded(part)) return part;
    const media = found.get(part.data.href);
    if (media !== undefined) return { ...part, mediaType: media.type, data: media.bytes };
    reportOmission(`file from ${part.data.host}`);
    return { type: "text", text: "[The file that was here can no longer be fetched.]" } as const;
  };
  if (message.role === "user") return { ...message, content: message.content.map(fill) };
  return message.role === "assistant" ? { ...message, content: message.content.map(fill) } : message;
}
