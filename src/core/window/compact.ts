/** Compacts a conversation: the model is asked for a summary, and that is the whole answer. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";
import { isSteering, type Item } from "../item.ts";
import { pairTools, withoutOpen } from "../place/tools.ts";
import { type Finish, isCutOff, type Turn } from "../turn.ts";

/** Asks for a summary of the turn's conversation and yields one compaction; `stream` asks the adapter. */
export async function* summarise(
  turn: Turn,
  itemsParam: string,
  stream: (turn: Turn) => AsyncIterable<readonly Delta[]>,
): AsyncGenerator<readonly Delta[], void, void> {
  if (turn.items.every(isSteering)) throw nothingSaid(itemsParam);
  let summary = "";
  let finish: Finish = "stop";
  for await (const batch of stream(toSummaryTurn(turn))) {
    for (const delta of batch) {
      if (delta.type === "text") summary += delta.text;
      if (delta.type === "finish") finish = delta.reason;
    }
    // Even an empty batch says that the model has begun.
    yield batch.filter(isAbout);
  }
  // An empty summary in place of a conversation would lose it, and so would half of one.
  if (summary.trim() === "")
    throw new GatewayError("adapter_protocol", "The model gave no summary of the conversation.");
  if (isCutOff(finish))
    throw new GatewayError("adapter_protocol", "The model's summary of the conversation was cut off.");
  yield [{ type: "compaction", summary }];
}

const prompt =
  "Write a summary of this conversation that will take its place: whoever goes on with it will see your summary and " +
  "nothing else. Keep every fact, decision, name, number, date, path and identifier that may matter later; what was " +
  "asked for, and how it is wanted; what is done, what is still open and what comes next; and the results of tools " +
  "that matter, with their exact values. Leave out greetings, repetitions and dead ends. Do not answer or continue the " +
  "conversation, and add nothing that was not said. Write in the language of the conversation. Reply with the summary alone.";

/**
 * The conversation, then the request for a plain-text summary; the caller's own fields could ask for something else.
 */
function toSummaryTurn(turn: Turn): Turn {
  const settings = {
    ...turn.settings,
    tools: [],
    toolChoice: undefined,
    allowedTools: undefined,
    parallelToolCalls: undefined,
    format: undefined,
    topLogprobs: undefined,
    maxOutputTokens: undefined,
    native: undefined,
  };
  // A call still waiting for its output would stand between the conversation and the prompt, and models refuse that.
  const said = withoutOpen(turn.items, pairTools(turn.items).open);
  const items: Item[] = said.filter((item) => !bringsSettings(item));
  items.push({ type: "message", role: "user", content: prompt });
  return { ...turn, items, settings };
}

/** Tools and settings among the items would come back with them. */
function bringsSettings(item: Item): boolean {
  return item.type === "other" && isSteering(item);
}

/** What is said about the answer rather than in it. */
function isAbout({ type }: Delta): boolean {
  return type === "usage" || type === "notes" || type === "finish";
}

function nothingSaid(param: string): GatewayError {
  return new GatewayError("invalid_value", "There is no conversation to compact: nothing has been said yet.", {
    param,
  });
}
