/** How much one request may bring. */
import { GatewayError } from "./errors.ts";
import type { Ask } from "./turn.ts";

export function checkSize({ items, itemsParam: param }: Pick<Ask, "items" | "itemsParam">, maxItems: number): void {
  if (items.length <= maxItems) return;
  throw new GatewayError(
    "too_many_messages",
    `'${param}' comes to ${items.length} messages, calls and outputs; at most ${maxItems} are allowed (gateway.http.limits.max_messages).`,
    { param },
  );
}
