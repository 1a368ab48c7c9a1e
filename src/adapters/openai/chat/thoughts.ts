/** Tells a model's reasoning from its answer: servers have it in a field of its own, in parts of the content, or in tags. */
import { type JsonObject, isObject, listAt, objectAt, textAt } from "../../json.ts";

/** What a message says, or a piece of it. */
interface Said {
  readonly thought: string;
  readonly text: string;
}

export interface ThoughtReader {
  /** `isAtOnce`: it is the whole message, not a piece. */
  read(message: JsonObject, isAtOnce: boolean): Said;
}

export function createThoughtReader(): ThoughtReader {
  let isInTags = false;

  /** Of pieces in tags only those with thoughts are marked; the closing tag comes with the answer. */
  function readTagged(text: string, isMarked: boolean): Said {
    const end = text.indexOf(closing);
    if (isMarked) {
      isInTags = end === -1;
      const thought = (isInTags ? text : text.slice(0, end)).replace(/^<thought>/, "");
      return { thought, text: isInTags ? "" : text.slice(end + closing.length) };
    }
    isInTags &&= text === "";
    return { thought: "", text: end === 0 ? text.slice(closing.length) : text };
  }

  return {
    read(message, isAtOnce) {
      const { content } = message;
      const parts = Array.isArray(content) ? content.filter(isObject) : undefined;
      const text = parts === undefined ? (typeof content === "string" ? content : "") : joinTexts(parts);
      const thought = thoughtIn(message) ?? (parts && joinThoughts(parts));
      if (thought !== undefined) return { thought, text };
      const isMarked = isThought(message) && (!isAtOnce || text.includes(closing));
      return isMarked || isInTags ? readTagged(text, isMarked) : { thought: "", text };
    },
  };
}

/** In whichever field a server has it. */
function thoughtIn(message: JsonObject): string | undefined {
  return textAt(message, "reasoning_content") ?? textAt(message, "reasoning") ?? textAt(message, "reasoning_text");
}

const closing = "</thought>";

/** Its content is marked as a thought. */
export function isThought(message: JsonObject): boolean {
  const marks = objectAt(message, "extra_content");
  return marks !== undefined && Object.values(marks).some((mark) => isObject(mark) && mark["thought"] === true);
}

/** Some servers write content as a list of parts. */
function joinTexts(parts: readonly JsonObject[]): string {
  return parts.map((part) => textAt(part, "text") ?? "").join("");
}

/** Reasoning may be among them, again in parts. */
function joinThoughts(parts: readonly JsonObject[]): string {
  return parts
    .map((part) => textAt(part, "thinking") ?? joinTexts((listAt(part, "thinking") ?? []).filter(isObject)))
    .join("");
}
