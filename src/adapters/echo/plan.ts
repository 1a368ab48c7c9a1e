/** Decides what the model says: what tools returned, calls, or the last user text in the wanted format, as its directives say. */
import { GatewayError } from "../../core/errors.ts";
import { type Content, isInstruction, type Item, textOf } from "../../core/item.ts";
import type { Settings } from "../../core/settings.ts";
import type { Turn } from "../../core/turn.ts";
import { reportableCodes } from "../said.ts";
import { type Call, chooseCalls, makeSample } from "./calls.ts";

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

export function planAnswer({ items, settings }: Turn): Plan {
  const outputs = readToolOutputs(items);
  const question = describe(items.findLast((item) => item.type === "message" && item.role === "user"));
  // The user's directives were followed before the tools were called.
  const { text, refuses, sleepMs, failure, maxWords } = readDirectives(question, outputs === undefined);
  const { reasoningEffort: effort = "none", reasoningSummary, maxOutputTokens = Infinity } = settings;
  const utterances: Utterance[] = [];
  if (effort !== "none" && effort !== "minimal" && text !== "") {
    const summary = reasoningSummary === undefined ? undefined : 0;
    utterances.push({ type: "reasoning", text: `thinking about: ${text}`, summary });
  }
  const calls = refuses ? [] : chooseCalls(settings, text, outputs === undefined);
  if (refuses) utterances.push({ type: "refusal", text });
  else if (calls.length > 0) for (const call of calls) utterances.push(call);
  else utterances.push({ type: "text", text: untilStop(inFormat(outputs ?? text, settings), settings.stop) });
  return {
    sleepMs,
    failure,
    maxWords: Math.min(maxWords, maxOutputTokens),
    utterances,
    inputTokens: items.reduce(
      (sum, item) => sum + wordsIn(textOf(contentOf(item))),
      wordsIn(settings.instructions ?? ""),
    ),
  };
}

/** What the tools said, if they spoke last. */
function readToolOutputs(items: readonly Item[]): string | undefined {
  const talk = items.filter((item) => !isInstruction(item));
  const outputs = talk.slice(talk.findLastIndex(({ type }) => type !== "tool-output") + 1);
  if (outputs.length === 0) return undefined;
  return outputs.map((output) => `tool said: ${describe(output)}`).join("\n");
}

/** The text or, failing that, what else there is, in brackets. */
function describe(item: Item | undefined): string {
  const content = contentOf(item);
  const text = textOf(content);
  if (text !== "" || typeof content === "string") return text;
  const told = content.map((part) => {
    if (part.type === "file" && part.name !== undefined) return `[file ${part.name}]`;
    return `[${part.type === "other" ? String(part.extra.fields["type"]) : part.type}]`;
  });
  return told.join(" ");
}

function contentOf(item: Item | undefined): Content {
  return item?.type === "message" ? item.content : item?.type === "tool-output" ? item.output : "";
}

/** The codes of an adapter that are not about the request. */
const codes = reportableCodes.filter((code) => code.startsWith("adapter_") || code === "overloaded");

const directive = new RegExp(
  `^(?:FAIL before|FAIL after (?<words>\\d{1,6})|ERROR (?<code>${codes.join("|")})|SLEEP (?<ms>\\d{1,6}))(?:\\s+|$)`,
);
const refusal = /^REFUSE\s+(?=\S)/;

/** They stand in front of the text, each on its own line or not; REFUSE is the last. */
function readDirectives(said: string, areFollowed: boolean) {
  let text = said;
  let sleepMs = 0;
  let failure: GatewayError | undefined;
  let maxWords = Infinity;
  for (let match = areFollowed && directive.exec(text); match; match = directive.exec(text)) {
    const { code = "adapter_error", words = 0, ms } = match.groups ?? {};
    text = text.slice(match[0].length);
    if (ms === undefined) [failure, maxWords] = [fail(code), Number(words)];
    else sleepMs = Number(ms);
  }
  const refuses = areFollowed && refusal.test(text);
  return { text: refuses ? text.replace(refusal, "") : text, refuses, sleepMs, failure, maxWords };
}

function fail(name: string): GatewayError {
  const code = codes.find((known) => known === name) ?? "adapter_error";
  const retryAfterSeconds = code === "adapter_rate_limit" || code === "overloaded" ? 1 : undefined;
  const message = "The echo adapter failed, because the user text told it to.";
  return new GatewayError(code, message, { retryAfterSeconds });
}

function inFormat(text: string, { format }: Settings): string {
  switch (format?.type) {
    case undefined:
    case "text":
      return text;
    case "json":
      return toSpacedJson({ echo: text });
    case "schema":
      return toSpacedJson(makeSample(format.schema));
  }
}

/** JSON on one line with spaces, so that it streams word by word. No JSON string contains a bare line break. */
function toSpacedJson(value: unknown): string {
  return JSON.stringify(value, undefined, 1)
    .replaceAll(/(?<=[{[])\n *|\n *(?=[}\]])/g, "")
    .replaceAll(/\n */g, " ");
}

function untilStop(text: string, stops: readonly string[] = []): string {
  const ends = stops.map((stop) => text.indexOf(stop)).filter((at) => at !== -1);
  return text.slice(0, Math.min(text.length, ...ends));
}

const blank = 0x20;

/** All of a long conversation is counted at each turn, and a list of its words would be many times its size. */
function wordsIn(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) > blank && (at === 0 || text.charCodeAt(at - 1) <= blank)) count += 1;
  }
  return count;
}
