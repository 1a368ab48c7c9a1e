/** How many tokens a conversation has, given how many a text has; images, files and what is sealed are estimated. */
import type { Content, Extra, Item, Part } from "../item.ts";

/** How many tokens a text has. */
export type CountText = (text: string) => number;

/**
 * Whether the items surely fit, judged by size alone: a token has at least one byte. This is cheap enough for every
 * turn, and enough for most conversations.
 */
export function surelyFits(items: readonly Item[], fixed: readonly string[], tokens: number): boolean {
  let characters = 0;
  const most = countItems(items, fixed, (text) => {
    characters += text.length;
    return text.length * maxBytesPerCharacter;
  });
  if (most <= tokens) return true;
  // Counting bytes exactly takes a look at every character, so only where it could make a difference.
  return characters <= tokens && countItems(items, fixed, countBytes) <= tokens;
}

/** How many tokens the model would read. */
export function countItems(items: readonly Item[], fixed: readonly string[], count: CountText): number {
  let tokens = 0;
  for (const text of fixed) tokens += tokensPerItem + count(text);
  for (const item of items) tokens += tokensOf(item, count);
  return tokens;
}

/** What a wire puts around each item: who speaks, where it begins and ends. */
const tokensPerItem = 4;

export function tokensOf(item: Item, count: CountText): number {
  return tokensPerItem + tokensInside(item, count);
}

function tokensInside(item: Item, count: CountText): number {
  switch (item.type) {
    case "message":
      return countContent(item.content, count) + (item.name === undefined ? 0 : count(item.name));
    case "reasoning":
      if (item.encrypted !== undefined) return countSealed(item.encrypted);
      return Math.max(
        item.summary.reduce((tokens, section) => tokens + count(section), count(item.text)),
        // What signs it has its words again, or stands for words that nobody is shown.
        item.extra === undefined ? 0 : countSealed(JSON.stringify(item.extra.fields)),
      );
    case "tool-call":
      return count(item.name) + count(item.arguments);
    case "tool-output":
      return countContent(item.output, count) + (item.extra === undefined ? 0 : countOpaque(item.extra.fields, count));
    case "compaction":
      return item.encrypted === undefined ? count(item.summary) : countSealed(item.encrypted);
    case "other":
      return countOpaque(item.extra.fields, count);
  }
}

function countContent(content: Content, count: CountText): number {
  if (typeof content === "string") return count(content);
  return content.reduce((tokens, part) => tokens + countPart(part, count), 0);
}

/** What a large image costs OpenAI's models, and one of low detail. */
const imageTokens = 1_105;
const smallImageTokens = 85;
/** A few pages, for a file that we cannot see. */
const unseenFileTokens = 2_000;
const bytesPerTextToken = 4;
/** Of a PDF and the like: most of it is fonts and images. Too high an estimate would refuse what fits. */
const bytesPerFileToken = 40;
/** A token is a tenth of a second: 16-bit samples at 16 kHz, or speech at 32 kbit/s. */
const bytesPerWaveToken = 3_200;
const bytesPerAudioToken = 400;

function countPart(part: Part, count: CountText): number {
  switch (part.type) {
    case "text":
    case "refusal":
      return count(part.text);
    case "image":
      return part.detail === "low" ? smallImageTokens : imageTokens;
    case "audio":
      return Math.ceil(sizeOf(part.data) / (part.format === "wav" ? bytesPerWaveToken : bytesPerAudioToken));
    case "file":
      if (part.data === undefined) return unseenFileTokens;
      return Math.ceil(
        sizeOf(part.data) / (part.data.startsWith("data:text/") ? bytesPerTextToken : bytesPerFileToken),
      );
    case "other":
      return countOpaque(part.extra.fields, count);
  }
}

/** Of what only its dialect knows: a long string without blanks is an image or the like, not text. */
function countOpaque(fields: Extra["fields"], count: CountText): number {
  let images = 0;
  const text = JSON.stringify(fields, (_key, value: unknown) => {
    if (typeof value !== "string" || value.length <= longestWord || /\s/.test(value)) return value;
    images += 1;
    return "";
  });
  return count(text) + images * imageTokens;
}

const longestWord = 4_096;

/** What only its maker can read is about as long as the text it stands for. */
function countSealed(base64: string): number {
  return Math.ceil(sizeOf(base64) / bytesPerTextToken);
}

function sizeOf(base64: string): number {
  return (base64.length * 3) / 4;
}

const maxBytesPerCharacter = 3;

/** An upper bound of the bytes in UTF-8: each half of a surrogate pair counts as three. */
function countBytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x800) bytes += 2;
    else if (code >= 0x80) bytes += 1;
  }
  return bytes;
}
