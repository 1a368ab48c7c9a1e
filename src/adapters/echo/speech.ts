/** Says a plan as deltas, one per word, within the token limit. A token is a word. */
import type { Delta } from "../../core/delta.ts";
import type { GatewayError } from "../../core/errors.ts";
import { argumentPieces, words } from "./words.ts";

/** What the model is going to say. */
export interface Plan {
  readonly sleepMs: number;
  /** It fails after this many words, or when it has no more. */
  readonly failure: { readonly afterWords: number; readonly error: GatewayError } | undefined;
  readonly utterances: readonly Utterance[];
  readonly inputTokens: number;
  readonly maxOutputTokens: number;
}

export type Utterance =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string; readonly summary: number | undefined }
  | { readonly type: "call"; readonly kind: "function" | "custom"; readonly name: string; readonly text: string };

/** Usage and finish come last; a plan that fails has neither. */
export function* speak(plan: Plan): Generator<Delta, void, void> {
  const { failure, maxOutputTokens, inputTokens } = plan;
  const lastWord = Math.min(maxOutputTokens, failure?.afterWords ?? Infinity);
  let said = 0;
  let reasoningTokens = 0;
  let cut = false;
  for (const delta of toDeltas(plan.utterances)) {
    cut = said === lastWord;
    if (cut) break;
    if (isWord(delta)) said += 1;
    if (delta.type === "reasoning") reasoningTokens += 1;
    yield delta;
  }
  if (failure !== undefined) return;
  yield { type: "usage", usage: { inputTokens, cachedTokens: 0, outputTokens: said, reasoningTokens } };
  const called = plan.utterances.some(({ type }) => type === "call");
  yield { type: "finish", reason: cut ? "length" : called ? "tool-calls" : "stop" };
}

/** Whether the delta says something, and so is worth a pause. */
export function isWord(delta: Delta): boolean {
  return "text" in delta;
}

function* toDeltas(utterances: readonly Utterance[]): Generator<Delta, void, void> {
  for (const [index, utterance] of utterances.entries()) {
    if (utterance.type === "call") {
      yield { type: "tool-call", index, name: utterance.name, kind: utterance.kind };
      for (const text of argumentPieces(utterance.text)) yield { type: "tool-arguments", index, text };
    } else {
      for (const text of words(utterance.text)) yield { ...utterance, text };
    }
  }
}
