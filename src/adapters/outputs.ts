/** For servers whose tool messages hold only text: a user message shows what else the tools returned. */
import type { Item, Part } from "../core/item.ts";

/** That message follows the last of successive outputs, since nothing may come between them. */
export function showOutputs(items: readonly Item[]): readonly Item[] {
  if (!items.some((item) => item.type === "tool-output" && typeof item.output !== "string")) return items;
  const all: Item[] = [];
  let shown: Part[] = [];

  function show(): void {
    if (shown.length > 0) all.push({ type: "message", role: "user", content: shown });
    shown = [];
  }

  for (const item of items) {
    if (item.type !== "tool-output") show();
    if (item.type !== "tool-output" || typeof item.output === "string") {
      all.push(item);
      continue;
    }
    const texts = item.output.filter((part) => part.type === "text" || part.type === "refusal");
    const others = item.output.filter((part) => part.type !== "text" && part.type !== "refusal");
    all.push({ ...item, output: texts.map(({ text, extra }) => ({ type: "text", text, extra })) });
    if (others.length > 0) shown.push({ type: "text", text: `Output of tool call ${item.callId}:` });
    for (const part of others) shown.push(part);
  }
  show();
  return all;
}
