/** Where a part stands in a request's body. */
import type { Part } from "../core/item.ts";
import type { Ask, PathOf } from "../core/turn.ts";

/**
 * `pathOfItem` is the path of an item's content, `leafOf` that of the offending field in a part. Used only when a part
 * is refused, so nothing is recorded while reading the body.
 */
export function createPathOf(
  items: Ask["items"],
  pathOfItem: (index: number, key: "content" | "output") => string,
  leafOf: (part: Part) => string,
): PathOf {
  return (part) => {
    for (const [index, item] of items.entries()) {
      const content = item.type === "message" ? item.content : item.type === "tool-output" ? item.output : "";
      const place = typeof content === "string" ? -1 : content.indexOf(part);
      const key = item.type === "message" ? "content" : "output";
      if (place !== -1) return `${pathOfItem(index, key)}[${place}]${leafOf(part)}`;
    }
    return undefined;
  };
}
