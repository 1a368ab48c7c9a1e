/** Reads a chat completions answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, isObject, listAt, objectAt, textAt } from "../../json.ts";
import { errorIn } from "../failure.ts";
import { requireJson } from "../json.ts";
import { type AnswerReader, type ReplyReader, createStreamReader, requireObject } from "../stream.ts";
import { readUsage } from "../usage.ts";
import { type ChoiceReader, createChoiceReader, type Word } from "./choice.ts";

/** Reads a stream. */
export function createReplyReader(scrub: Scrub, isCustom = never, choices = 1): ReplyReader {
  return createStreamReader(createAnswerReader(scrub, "delta", isCustom, choices), scrub);
}

/** No function stands for a custom tool. */
const never = (_name: string): boolean => false;

/** Reads an answer that came whole. */
export function readWholeReply(body: string, scrub: Scrub, isCustom = never, choices = 1): readonly Delta[] {
  const deltas: Delta[] = [];
  const answer = createAnswerReader(scrub, "message", isCustom, choices);
  answer.accept(requireObject(requireJson(body, scrub)), deltas);
  if (!answer.hasMessage()) throw new GatewayError("adapter_protocol", "The upstream's answer contains no message.");
  answer.end(deltas);
  return deltas;
}

/** A chunk and a whole answer differ only in the key of the message. Choices that were not requested are ignored. */
function createAnswerReader(
  scrub: Scrub,
  word: Word,
  isCustom: (name: string) => boolean,
  count: number,
): AnswerReader & { readonly hasMessage: () => boolean } {
  const first = createChoiceReader(word, isCustom);
  const others = new Map<number, ChoiceReader>();
  let fingerprint: string | undefined;
  let serviceTier: string | undefined;

  function acceptNotes(body: JsonObject, deltas: Delta[]): void {
    const newFingerprint = textAt(body, "system_fingerprint") ?? fingerprint;
    const newTier = textAt(body, "service_tier") ?? serviceTier;
    if (newFingerprint === fingerprint && newTier === serviceTier) return;
    fingerprint = newFingerprint;
    serviceTier = newTier;
    deltas.push({ type: "notes", notes: { fingerprint, serviceTier } });
  }

  /** `at`: its place in the list, used as its index if it has none. */
  function acceptChoice(choice: JsonObject, at: number, deltas: Delta[]): void {
    const index = typeof choice["index"] === "number" ? choice["index"] : at;
    if (index === 0) return first.accept(choice, deltas);
    if (!Number.isInteger(index) || index < 0 || index >= count) return;
    let other = others.get(index);
    if (other === undefined) others.set(index, (other = createChoiceReader(word, isCustom)));
    const said: Delta[] = [];
    other.accept(choice, said);
    emitForChoice(index, said, deltas);
  }

  return {
    accept(body, deltas) {
      const error = errorIn(body);
      if (error !== undefined) throw toReportedFailure(error, scrub);
      acceptNotes(body, deltas);
      for (const [at, choice] of (listAt(body, "choices") ?? []).entries())
        if (isObject(choice)) acceptChoice(choice, at, deltas);
      const usage = objectAt(body, "usage");
      if (usage !== undefined) deltas.push({ type: "usage", usage: readUsage(usage, "prompt", "completion") });
    },
    hasMessage: first.hasMessage,
    /** It may end once every choice that began has; a missing choice is still to come. */
    stage() {
      if (count === 1) return first.stage();
      const stages = [first, ...others.values()].map((choice) => choice.stage());
      if (stages.includes("open")) return "open";
      return stages.length < count || stages.includes("finished") ? "finished" : "whole";
    },
    end(deltas) {
      first.end(deltas);
      for (const [choice, other] of others) {
        const said: Delta[] = [];
        other.end(said);
        emitForChoice(choice, said, deltas);
      }
    },
  };
}

/** Deltas of a choice other than the first, with its number. */
function emitForChoice(choice: number, said: readonly Delta[], deltas: Delta[]): void {
  for (const delta of said) deltas.push({ ...delta, choice });
}
