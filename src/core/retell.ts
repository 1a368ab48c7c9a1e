/** An answer told once more: of the deltas that were kept, or, later, whole, of its items. */
import type { Delta, Event } from "./event.ts";
import { createFrame } from "./frame.ts";
import type { Item, TextPart } from "./item.ts";
import type { Answer } from "./turn.ts";

export function retell(key: string, answer: Answer, deltas: readonly Delta[] | undefined, wasQueued: boolean): Event[] {
  const events: Event[] = wasQueued ? [{ type: "turn-queued" }, { type: "turn-start" }] : [{ type: "turn-start" }];
  const frame = createFrame(key);
  frame.accept(deltas ?? toAllDeltas(answer), events);
  frame.end(answer.error, answer.endedAt, events);
  // The items are those that are kept: one may have been deleted since.
  events.push({ type: "turn-end", answer });
  return events;
}

function toAllDeltas({ items, isBrokenOff = false, finish }: Answer): Delta[] {
  const said = items.flatMap(toDeltas);
  if (isBrokenOff && said.at(-1)?.type === "message-end") said.pop();
  return [...said, { type: "finish", reason: finish }];
}

function toDeltas(item: Item, index: number): Delta[] {
  switch (item.type) {
    case "message": {
      const { content, extra } = item;
      const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
      const said: Delta[] = [];
      for (const part of parts) {
        if (part.type === "refusal") said.push({ type: "refusal", text: part.text, extra });
        if (part.type !== "text") continue;
        const { text, logprobs, annotations = [] } = part as TextPart;
        said.push({ type: "text", text, logprobs, extra });
        for (const annotation of annotations) said.push({ type: "annotation", annotation });
      }
      said.push({ type: "message-end" });
      return said;
    }
    case "reasoning": {
      const { summary, text, encrypted, extra } = item;
      return [
        ...summary.map((section, number): Delta => ({ type: "reasoning", text: section, summary: number })),
        ...(text === "" ? [] : [{ type: "reasoning", text } as const]),
        ...(extra === undefined ? [] : [{ type: "reasoning-extra", extra } as const]),
        ...(encrypted === undefined ? [] : [{ type: "reasoning-seal", encrypted } as const]),
      ];
    }
    case "tool-call": {
      const { callId, name, group, kind, extra, arguments: written } = item;
      return [
        { type: "tool-call", index, callId, name, group, kind, extra },
        { type: "tool-arguments", index, text: written },
      ];
    }
    case "compaction":
      return [{ type: "compaction", summary: item.summary }];
    case "other":
      return [{ type: "other", extra: item.extra, exchange: item.exchange }];
    case "tool-output":
    case "reference":
      return [];
  }
}
