/** Says a plan as deltas, a word each, within the token limit: a token is a word. */
import type { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";

/** What the model is going to say. */
export interface Plan {
  readonly sleepMs: number;
  /** It fails behind its last word, of which there are at most so many. */
  readonly failure: GatewayError | undefined;
  readonly maxWords: number;
  readonly utterances: readonly Utterance[];
  readonly inputTokens: number;
}

export type Utterance =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string; readonly summary: number | undefined }
  | Call;

export interface Call {
  readonly type: "call";
  readonly kind: "function" | "custom";
  readonly name: string;
  readonly text: string;
}

/** Usage and finish come last; a plan that fails has neither. */
export function* speak({ failure, maxWords, utterances, inputTokens }: Plan): Generator<Delta, void, void> {
  let outputTokens = 0;
  let reasoningTokens = 0;
  let isCut = false;
  for (const delta of toDeltas(utterances)) {
    isCut = outputTokens === maxWords;
    if (isCut) break;
    if (isWord(delta)) outputTokens += 1;
    if (delta.type === "reasoning") reasoningTokens += 1;
    yield delta;
  }
  if (failure !== undefined) return;
  yield { type: "usage", usage: { inputTokens, cachedTokens: 0, outputTokens, reasoningTokens } };
  yield { type: "finish", reason: isCut ? "length" : "stop" };
}

export function isWord(delta: Delta): boolean {
  return "text" in delta;
}

/** A word and the blanks around it, so that joined they are the text. Of arguments, which have few, a client gets pieces. */
const words = /\s*\S+\s*|\s+/g;
const pieces = /\s*\S{1,6}\s*|\s+/gu;

function* toDeltas(utterances: readonly Utterance[]): Generator<Delta, void, void> {
  for (const [index, utterance] of utterances.entries()) {
    if (utterance.type === "call") {
      const { kind, name } = utterance;
      yield { type: "tool-call", index, name, kind };
      for (const [text] of utterance.text.matchAll(pieces)) yield { type: "tool-arguments", index, text };
    } else {
      for (const [text] of utterance.text.matchAll(words)) yield { ...utterance, text };
    }
  }
}
