/** Reads a chat completions answer, whole or as server-sent events, into deltas. */
import type { Delta } from "../../../core/delta.ts";
import { GatewayError } from "../../../core/errors.ts";
import { type Scrub, toReportedFailure } from "../../http/refusal.ts";
import { type JsonObject, isObject, listAt, objectAt, textAt } from "../../json.ts";
import { errorIn } from "../failure.ts";
import { requireJson } from "../json.ts";
import { extraOf } from "../native.ts";
import { type AnswerReader, type ReplyReader, type Say, createStreamReader, requireObject } from "../stream.ts";
import { readUsage } from "../usage.ts";
import { type ChoiceReader, createChoiceReader, type Word } from "./choice.ts";

/** Reads a stream. */
export function createReplyReader(scrub: Scrub, isCustom = never, choices = 1): ReplyReader {
  return createStreamReader((say) => createAnswerReader(say, scrub, "delta", isCustom, choices), scrub);
}

/** No function stands for a custom tool. */
const never = (_name: string): boolean => false;

/** Reads an answer that came whole. */
export function readWholeReply(body: string, scrub: Scrub, isCustom = never, choices = 1): readonly Delta[] {
  const deltas: Delta[] = [];
  const answer = createAnswerReader((delta) => deltas.push(delta), scrub, "message", isCustom, choices);
  answer.accept(requireObject(requireJson(body, scrub)));
  if (!answer.hasMessage()) throw new GatewayError("adapter_protocol", "The upstream's answer contains no message.");
  answer.end();
  return deltas;
}

/**
 * What all choices may keep of what signs their reasoning. More than the longest reasoning has, even in pieces of a word
 * each: what is told in two parts may not be joined.
 */
const maxSignedSize = 16 * 1024 * 1024;

/** A chunk and a whole answer differ only in the key of the message. Choices that were not requested are ignored. */
function createAnswerReader(
  say: Say,
  scrub: Scrub,
  word: Word,
  isCustom: (name: string) => boolean,
  count: number,
): AnswerReader & { readonly hasMessage: () => boolean } {
  const createReader = (tell: Say) => createChoiceReader(tell, scrub, word, isCustom, maxSignedSize / count);
  const first = createReader(say);
  const choices = new Map([[0, first]]);
  let fingerprint: string | undefined;
  let serviceTier: string | undefined;
  /** Fields that we do not know, in JSON: some servers repeat them with every chunk. */
  const added = new Map<string, string>();

  function acceptExtra(body: JsonObject, usage: JsonObject | undefined): void {
    const extra = extraOf(body, knownOfBody, "chat");
    const ofUsage = usage && extraOf(usage, knownOfUsage, "chat");
    if (extra === undefined && ofUsage === undefined) return;
    const fields = { ...extra?.fields, ...(ofUsage && { usage: ofUsage.fields }) };
    const news = Object.entries(fields).filter(([key, value]) => {
      const text = JSON.stringify(value);
      const isNew = added.get(key) !== text;
      added.set(key, text);
      return isNew;
    });
    if (news.length > 0)
      say({ type: "notes", notes: { extra: { dialect: "chat", fields: Object.fromEntries(news) } } });
  }

  function acceptNotes(body: JsonObject): void {
    const newFingerprint = textAt(body, "system_fingerprint") ?? fingerprint;
    const newTier = textAt(body, "service_tier") ?? serviceTier;
    if (newFingerprint === fingerprint && newTier === serviceTier) return;
    fingerprint = newFingerprint;
    serviceTier = newTier;
    say({ type: "notes", notes: { fingerprint, serviceTier } });
  }

  function choiceAt(index: number): ChoiceReader | undefined {
    const known = choices.get(index);
    if (known !== undefined || !Number.isInteger(index) || index < 0 || index >= count) return known;
    const other = createReader((delta) => say({ ...delta, choice: index }));
    choices.set(index, other);
    return other;
  }

  return {
    accept(body) {
      const error = errorIn(body);
      if (error !== undefined) throw toReportedFailure(error, scrub);
      acceptNotes(body);
      let usage = objectAt(body, "usage");
      for (const [at, choice] of (listAt(body, "choices") ?? []).entries()) {
        if (!isObject(choice)) continue;
        // Its place in the list is its index if it has none.
        choiceAt(typeof choice["index"] === "number" ? choice["index"] : at)?.accept(choice);
        usage ??= objectAt(choice, "usage");
      }
      acceptExtra(body, usage);
      if (usage !== undefined) say({ type: "usage", usage: readUsage(usage, "prompt", "completion") });
    },
    hasMessage: first.hasMessage,
    /** It may end once every choice that began has; a missing choice is still to come. */
    stage() {
      if (count === 1) return first.stage();
      const stages = [...choices.values()].map((choice) => choice.stage());
      if (stages.includes("open")) return "open";
      return stages.length < count || stages.includes("finished") ? "finished" : "whole";
    },
    end() {
      for (const choice of choices.values()) choice.end();
    },
  };
}

/** Also what is not for callers: two fields only hide the length of a chunk, and others look like an error. */
const knownOfBody = new Set([
  "id",
  "object",
  "created",
  "model",
  "choices",
  "usage",
  "service_tier",
  "system_fingerprint",
  "error",
  "obfuscation",
  "p",
  "message",
  "code",
  "type",
]);

/** What else a server says of the usage, such as what it cost, is for the caller. */
const knownOfUsage = new Set([
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_tokens_details",
  "completion_tokens_details",
]);
