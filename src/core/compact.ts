/** Compacts a conversation: the model is asked for a summary in plain text, and one compaction is the whole answer. */
import type { Reply } from "./adapter.ts";
import { GatewayError } from "./errors.ts";
import type { Delta } from "./event.ts";
import { isInstruction, type Item } from "./item.ts";
import type { Finish } from "./turn.ts";
import type { Settings } from "./settings.ts";

/** The conversation and what is asked about it; tools among the items would come back with them. */
export function toSummaryItems(items: readonly Item[], itemsParam: string): readonly Item[] {
  const said = items.filter((item) => item.type !== "other" || item.tools === undefined);
  if (!said.every(isInstruction)) return [...said, { type: "message", role: "user", content: question }];
  const message = "There is no conversation to compact: nothing has been said yet.";
  throw new GatewayError("invalid_value", message, { param: itemsParam });
}

/** The caller's own fields could ask for something else than text. */
export function toSummarySettings({ instructions, reasoningEffort, serviceTier }: Settings): Settings {
  return { instructions, reasoningEffort, serviceTier, tools: [] };
}

/** The answer to that, as one compaction at its end. */
export function toSummaryReply(reply: Reply): Reply {
  let summary = "";
  let finish: Finish = "stop";
  let isOver = false;

  function take(batch: readonly Delta[]): Delta[] {
    const beside: Delta[] = [];
    for (const delta of batch) {
      if (delta.type === "text") summary += delta.text;
      else if (delta.type === "finish") finish = delta.reason;
      else if (delta.type === "usage" || delta.type === "notes") beside.push(delta);
    }
    return beside;
  }

  return {
    first: take(reply.first),
    async next() {
      if (isOver) return undefined;
      const batch = await reply.next();
      if (batch !== undefined) return take(batch);
      isOver = true;
      // An empty summary in place of a conversation would lose it, and so would half of one.
      if (summary.trim() === "" || finish === "length" || finish === "content-filter")
        throw new GatewayError("adapter_protocol", "The model gave no whole summary of the conversation.");
      return [{ type: "compaction", summary }];
    },
    close: (answer) => reply.close?.(answer),
  };
}

const question =
  "Write a summary of this conversation that will take its place: whoever goes on with it will see your summary and " +
  "nothing else. Keep every fact, decision, name, number, date, path and identifier that may matter later; what was " +
  "asked for, and how it is wanted; what is done, what is still open and what comes next; and the results of tools " +
  "that matter, with their exact values. Leave out greetings, repetitions and dead ends. Do not answer or continue the " +
  "conversation, and add nothing that was not said. Write in the language of the conversation. Reply with the summary alone.";
