/** Compacts a conversation: the model is asked for a summary, and that is the whole answer. */
import type { Delta } from "../delta.ts";
import { GatewayError } from "../errors.ts";
import { isSteering, type Item } from "../item.ts";
import { pairTools } from "../place/tools.ts";
import { type Finish, isCutOff, type Turn, type Usage } from "../turn.ts";
import type { FitParts } from "./fit.ts";
import { createParts } from "./parts.ts";

/**
 * Asks for a summary of the turn's conversation and yields one compaction; `stream` asks the adapter. What is too long to
 * be read at once is read in parts, each with the summary of those before it.
 */
export async function* summarise(
  fitting: FitParts,
  turn: Turn,
  itemsParam: string,
  stream: (turn: Turn) => AsyncIterable<readonly Delta[]>,
): AsyncGenerator<readonly Delta[], void, void> {
  const summaryTurn = toSummaryTurn(turn);
  if (summaryTurn.items.every(isSteering)) throw nothingSaid(itemsParam);
  const parts = createParts(fitting, summaryTurn, prompt, itemsParam);
  let summary = "";
  let usage: Usage | undefined;
  for (;;) {
    const part = await parts.next(summary === "" ? [] : [{ type: "compaction", summary }]);
    if (part === undefined) break;
    const items = part.concat({ type: "message", role: "user", content: prompt });
    try {
      ({ summary, usage } = yield* readSummary(stream({ ...summaryTurn, items }), usage));
    } catch (thrown) {
      await parts.shorten(thrown);
    }
  }
  yield [{ type: "compaction", summary }];
}

/** A summary, while what is said about it is yielded; `before` was used before it. */
async function* readSummary(
  stream: AsyncIterable<readonly Delta[]>,
  before: Usage | undefined,
): AsyncGenerator<readonly Delta[], { readonly summary: string; readonly usage: Usage | undefined }, void> {
  let summary = "";
  let usage = before;
  let finish: Finish = "stop";
  for await (const batch of stream) {
    const about: Delta[] = [];
    for (const delta of batch) {
      if (delta.type === "text") summary += delta.text;
      else if (delta.type === "usage") about.push({ ...delta, usage: (usage = addUsage(before, delta.usage)) });
      else if (delta.type === "notes" || delta.type === "finish") about.push(delta);
      if (delta.type === "finish") finish = delta.reason;
    }
    // Even an empty batch says that the model has begun.
    yield about;
  }
  // An empty summary in place of a conversation would lose it, and so would half of one.
  if (summary.trim() === "")
    throw new GatewayError("adapter_protocol", "The model gave no summary of the conversation.");
  if (isCutOff(finish))
    throw new GatewayError("adapter_protocol", "The model's summary of the conversation was cut off.");
  return { summary, usage };
}

/** What was used in all; undefined: nothing before. */
export function addUsage(before: Usage | undefined, usage: Usage): Usage {
  if (before === undefined) return usage;
  const { cacheWriteTokens } = usage;
  return {
    inputTokens: before.inputTokens + usage.inputTokens,
    cachedTokens: before.cachedTokens + usage.cachedTokens,
    cacheWriteTokens:
      cacheWriteTokens === undefined ? before.cacheWriteTokens : (before.cacheWriteTokens ?? 0) + cacheWriteTokens,
    outputTokens: before.outputTokens + usage.outputTokens,
    reasoningTokens: before.reasoningTokens + usage.reasoningTokens,
  };
}

const prompt =
  "Write a summary of this conversation that will take its place: whoever goes on with it will see your summary and " +
  "nothing else. Keep every fact, decision, name, number, date, path and identifier that may matter later; what was " +
  "asked for, and how it is wanted; what is done, what is still open and what comes next; and the results of tools " +
  "that matter, with their exact values. Leave out greetings, repetitions and dead ends. Do not answer or continue the " +
  "conversation, and add nothing that was not said. Write in the language of the conversation. Reply with the summary alone.";

/** The conversation, to be answered in plain text; the caller's own fields could ask for something else. */
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
  const { open } = pairTools(turn.items);
  return { ...turn, items: turn.items.filter((item) => !open.has(item) && !bringsSettings(item)), settings };
}

/** Tools and settings among the items would come back with them. */
function bringsSettings(item: Item): boolean {
  return item.type === "other" && isSteering(item);
}

function nothingSaid(param: string): GatewayError {
  return new GatewayError("invalid_value", "There is no conversation to compact: nothing has been said yet.", {
    param,
  });
}
