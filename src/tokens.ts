/** Estimates, in bounded time, how many tokens a text has, by the vocabulary of OpenAI's newer models (o200k_base). */
import { hash } from "node:crypto";
import { makeOnce } from "./core/lazy.ts";

type CountTokens = (text: string) => number;

/** Loads the vocabulary on first use, which takes a fifth of a second; from then on, counting is synchronous. */
export function createTokenCounter(): () => Promise<CountTokens> {
  const counting = makeOnce(load);
  return async () => withinBudget(await counting());
}

/** How many characters are counted for one request; beyond that, tokens are extrapolated from the length. */
const maxCountedPerRequest = 262_144;

function withinBudget(count: CountTokens): CountTokens {
  let characters = 0;
  let tokens = 0;
  return (text) => {
    if (characters > maxCountedPerRequest) return Math.ceil(text.length * (tokens / characters));
    const counted = count(text);
    // Of a longer text, only samples were counted.
    characters += Math.min(text.length, maxCountedLength);
    tokens += text.length <= maxCountedLength ? counted : counted * (maxCountedLength / text.length);
    return counted;
  };
}

async function load(): Promise<CountTokens> {
  const { countTokens, setMergeCacheSize } = await import("gpt-tokenizer/encoding/o200k_base");
  // The library would cache pieces, each of which keeps its whole text in memory. We cache whole texts by digest.
  setMergeCacheSize(0);
  // What looks like a control token is only text here; by default the library would throw.
  const asText = { disallowedSpecial: new Set<string>() };
  const count = remember((text) => countSlices(text, (slice) => countTokens(slice, asText)));
  return (text) => countText(text, count);
}

/** A longer text is estimated from evenly spread samples, because other requests wait while one is counted. */
const maxCountedLength = 65_536;
const sampleCount = 32;
const sampleLength = maxCountedLength / sampleCount;

function countText(text: string, count: CountTokens): number {
  if (text.length <= maxCountedLength) return count(text);
  const step = (text.length - sampleLength) / (sampleCount - 1);
  let tokens = 0;
  for (let number = 0; number < sampleCount; number++) {
    const start = Math.round(number * step);
    tokens += count(text.slice(start, start + sampleLength));
  }
  return Math.round((tokens / maxCountedLength) * text.length);
}

/**
 * The library's time is quadratic in the length of an unbroken run (8,000 emoji take a second, 80,000 two minutes), and
 * a run of megabytes overflows its stack. In slices of this length no text takes more than about 6 µs a character.
 */
const maxSliceLength = 256;

function countSlices(text: string, count: CountTokens): number {
  let tokens = 0;
  for (let start = 0; start < text.length;) {
    const slice = text.slice(start, start + maxSliceLength);
    const end = start + slice.length === text.length ? slice.length : findEnd(slice);
    tokens += count(slice.slice(0, end));
    start += end;
  }
  return tokens;
}

/** Before the last space, since hardly any token spans one; without a space, between two characters. */
function findEnd(slice: string): number {
  const blank = slice.lastIndexOf(" ");
  if (blank > 0) return blank;
  const last = slice.charCodeAt(slice.length - 1);
  const isFirstHalf = last >= 0xd800 && last < 0xdc00;
  return isFirstHalf ? slice.length - 1 : slice.length;
}

/** From this length on a digest is cheaper than counting again. */
const minRememberedLength = 32;
const maxRememberedTexts = 50_000;

/** A conversation is counted again with every turn, and all but its end has been counted before. */
function remember(count: CountTokens): CountTokens {
  let recent = new Map<string, number>();
  let older = new Map<string, number>();
  return (text) => {
    if (text.length < minRememberedLength) return count(text);
    const digest = hash("sha256", text, "base64url");
    const known = recent.get(digest);
    if (known !== undefined) return known;
    const tokens = older.get(digest) ?? count(text);
    if (recent.size >= maxRememberedTexts) {
      older = recent;
      recent = new Map();
    }
    recent.set(digest, tokens);
    return tokens;
  };
}
