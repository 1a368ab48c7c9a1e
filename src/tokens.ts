/** Estimates, in bounded time, how many tokens a text has, by the vocabulary of OpenAI's newer models (o200k_base). */
import { hash } from "node:crypto";
import { createRequire } from "node:module";
import type * as O200k from "gpt-tokenizer/encoding/o200k_base";

type CountText = (text: string) => number;

/** Loads the vocabulary on first use, which takes a fifth of a second. */
export function createTokenCounter(): CountText {
  let count: CountText | undefined;
  return (text) => (count ??= load())(text);
}

function load(): CountText {
  const require = createRequire(import.meta.url);
  const library = require("gpt-tokenizer/encoding/o200k_base") as typeof O200k;
  // The library would cache pieces, each of which keeps its whole text in memory. We cache whole texts by digest.
  library.setMergeCacheSize(0);
  // What looks like a control token is only text here; by default the library would throw.
  const asText = { disallowedSpecial: new Set<string>() };
  return remember((text) => countSamples(text, (slice) => library.countTokens(slice, asText)));
}

/** A longer text is estimated from evenly spread samples, because other requests wait while one is counted. */
const maxCountedLength = 65_536;
const sampleCount = 32;
const sampleLength = maxCountedLength / sampleCount;

function countSamples(text: string, count: CountText): number {
  if (text.length <= maxCountedLength) return countSlices(text, count);
  const step = (text.length - sampleLength) / (sampleCount - 1);
  let tokens = 0;
  for (let number = 0; number < sampleCount; number++) {
    const start = Math.round(number * step);
    tokens += countSlices(text.slice(start, start + sampleLength), count);
  }
  return Math.round((tokens / maxCountedLength) * text.length);
}

/**
 * The library's time is quadratic in the length of an unbroken run (8,000 emoji take a second, 80,000 two minutes), and
 * a run of megabytes overflows its stack. In slices of this length no text takes more than about 6 µs a character.
 */
const maxSliceLength = 256;

function countSlices(text: string, count: CountText): number {
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
function remember(count: CountText): CountText {
  const known = new Map<string, number>();
  return (text) => {
    if (text.length < minRememberedLength) return count(text);
    const digest = hash("sha256", text, "base64url");
    const tokens = known.get(digest) ?? count(text);
    if (known.size >= maxRememberedTexts) known.clear();
    known.set(digest, tokens);
    return tokens;
  };
}
