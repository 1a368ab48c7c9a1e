/** Where a part stands in the body of a chat completion request. */
import type { Item, Part } from "../../core/item.ts";
import type { PathOf } from "../../core/turn.ts";
import type { Fields } from "../fields.ts";
import { countItems } from "./messages.ts";

/** Used only when a part is refused, so nothing is recorded while reading the body. */
export function createPathOf(body: Fields, items: readonly Item[]): PathOf {
  return (part) => {
    for (const [index, item] of items.entries()) {
      const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
      const place = typeof content === "string" ? -1 : content.indexOf(part);
      if (place !== -1) return `messages[${messageOf(body, index)}].content[${place}]${leafOf(part)}`;
    }
    return undefined;
  };
}

/** A message may have become several items, or none. */
function messageOf(body: Fields, itemIndex: number): number {
  return countItems(body).findIndex((count) => count > itemIndex);
}

function leafOf(part: Part): string {
  switch (part.type) {
    case "image":
      return ".image_url.url";
    case "audio":
      return ".input_audio.data";
    case "file":
      return part.data === undefined ? ".file.file_id" : ".file.file_data";
    default:
      return "";
  }
}
