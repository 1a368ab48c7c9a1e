/** Where a part stands in the body of a create request. */
import type { Part } from "../../core/item.ts";
import type { Ask, PathOf } from "../../core/turn.ts";

/** Used only when a part is refused, so nothing is recorded while reading the body. */
export function createPathOf(items: Ask["items"], param: string): PathOf {
  return (part) => {
    for (const [index, item] of items.entries()) {
      const [key, content] =
        item.type === "message"
          ? ["content", item.content]
          : item.type === "tool-output"
            ? ["output", item.output]
            : ["", ""];
      const place = typeof content === "string" ? -1 : content.indexOf(part);
      if (place !== -1) return `${param}[${index}].${key}[${place}]${leafOf(part)}`;
    }
    return undefined;
  };
}

function leafOf(part: Part): string {
  switch (part.type) {
    case "image":
      return part.url === undefined ? ".file_id" : ".image_url";
    case "audio":
      return ".input_audio.data";
    case "file":
      if (part.data !== undefined) return ".file_data";
      return part.url === undefined ? ".file_id" : ".file_url";
    default:
      return "";
  }
}
