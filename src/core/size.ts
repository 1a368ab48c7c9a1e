/** How much one request may bring. */
import { GatewayError } from "./errors.ts";
import type { Ask, Tool } from "./turn.ts";

export interface SizeLimits {
  readonly maxItems: number;
  readonly maxTools: number;
}

/** All tools count, including those in groups and those that items bring along. */
export function checkSize(
  ask: Pick<Ask, "items" | "itemsParam" | "toolsParam">,
  limits: SizeLimits,
  tools: readonly Tool[],
): void {
  const { items, itemsParam, toolsParam = "tools" } = ask;
  const { maxItems, maxTools } = limits;
  if (items.length > maxItems) {
    throw new GatewayError(
      "too_many_messages",
      `'${itemsParam}' comes to ${items.length} messages, calls and outputs; at most ${maxItems} are allowed (gateway.http.limits.max_messages).`,
      { param: itemsParam },
    );
  }
  const given = countTools(tools);
  let all = given;
  for (const item of items) if ("tools" in item) all += countTools(item.tools ?? []);
  if (all <= maxTools) return;
  const param = given > maxTools ? toolsParam : itemsParam;
  throw new GatewayError(
    "too_many_tools",
    `'${param}' brings the tools of this request to ${all}; at most ${maxTools} are allowed (gateway.http.limits.max_tools).`,
    { param },
  );
}

/** A group counts as its tools, or as one if it is empty. */
function countTools(tools: readonly Tool[]): number {
  let count = 0;
  for (const tool of tools) {
    const inner = tool.type === "other" ? tool.group?.tools : undefined;
    count += inner === undefined ? 1 : Math.max(1, countTools(inner));
  }
  return count;
}
