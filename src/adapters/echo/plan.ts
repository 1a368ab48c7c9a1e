/** Decides what the model says: what tools returned, calls, or the last user text in the wanted format. */
import { type Content, isInstruction, type Item, textOf } from "../../core/item.ts";
import type { Turn } from "../../core/turn.ts";
import type { Settings } from "../../core/settings.ts";
import { chooseCalls, readNamedValues } from "./calls.ts";
import { readDirectives } from "./directives.ts";
import { makeSample } from "./sample.ts";
import type { Plan, Utterance } from "./speech.ts";

export function planAnswer(turn: Turn): Plan {
  const { items, settings } = turn;
  const outputs = readToolOutputs(items);
  const question = describe(items.findLast((item) => item.type === "message" && item.role === "user"));
  // The user's directives were followed before the tools were called.
  const directives = readDirectives(outputs === undefined ? question : "");
  const { refuses, sleepMs, failure, maxWords } = directives;
  const text = outputs === undefined ? directives.text : question;
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
    inputTokens: items.reduce((sum, item) => sum + countWords(item), wordsIn(settings.instructions ?? "")),
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
  const content: Content = item?.type === "message" ? item.content : item?.type === "tool-output" ? item.output : "";
  const text = textOf(content);
  if (text !== "" || typeof content === "string") return text;
  const told = content.map((part) => {
    if (part.type === "file" && part.name !== undefined) return `[file ${part.name}]`;
    return `[${part.type === "other" ? String(part.extra.fields["type"]) : part.type}]`;
  });
  return told.join(" ");
}

function inFormat(text: string, { format }: Settings): string {
  switch (format?.type) {
    case undefined:
    case "text":
      return text;
    case "json":
      return toSpacedJson({ echo: text });
    case "schema":
      return toSpacedJson(makeSample(format.schema, readNamedValues(text), format.strict === true));
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

function countWords(item: Item): number {
  switch (item.type) {
    case "message":
      return wordsIn(textOf(item.content));
    case "reasoning":
      return wordsIn([item.text, ...item.summary].join(" "));
    case "tool-call":
      return wordsIn(item.arguments);
    case "tool-output":
      return wordsIn(textOf(item.output));
    default:
      return 0;
  }
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
