/** What was said and when, as text for a terminal. */
import type { Content, Item, Part } from "../../core/item.ts";

/** `2026-02-03 04:05:06Z` */
export function formatTime(date: Date): string {
  return date
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

/** `1 turn`, `2 turns` */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Texts come from outside: control characters are shown, not obeyed. */
export function toPlain(text: string): string {
  return text.replaceAll(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, (char) =>
    char === "\r" ? "" : `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** The same in one line, so that it cannot pass for a line of ours. */
export function toLine(text: string): string {
  return toPlain(text.replaceAll(/\s+/g, " "));
}

/** Speaker and words. */
export function describeItem(item: Item): readonly [speaker: string, text: string] {
  switch (item.type) {
    case "message":
      return [item.role, describeContent(item.content)];
    case "reasoning":
      return ["reasoning", [...item.summary, item.text].filter((text) => text !== "").join("\n") || "[sealed]"];
    case "tool-call":
      return ["tool call", `${item.name} ${item.arguments}`];
    case "tool-output":
      return ["tool output", describeContent(item.output)];
    case "compaction":
      return ["compaction", item.summary || "[sealed]"];
    case "other":
      return ["other", JSON.stringify(item.extra.fields)];
  }
}

function describeContent(content: Content): string {
  return typeof content === "string" ? content : content.map(describePart).join("\n");
}

function describePart(part: Part): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "refusal":
      return `[refusal] ${part.text}`;
    case "image":
      return `[image${part.url === undefined || part.url.startsWith("data:") ? "" : ` ${part.url}`}]`;
    case "file":
      return `[file${part.name === undefined ? "" : ` ${part.name}`}]`;
    case "audio":
    case "other":
      return `[${part.type}]`;
  }
}
