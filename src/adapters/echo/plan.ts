/** Decides what the model says to a turn: a tool's output told, calls, or the last user text back in the wanted format. */
import { type Content, type Item, isSteering, textOf } from "../../core/item.ts";
import type { Settings, Turn } from "../../core/turn.ts";
import { chooseCalls } from "./calls.ts";
import { readDirectives } from "./directives.ts";
import { makeSample } from "./sample.ts";
import type { Plan, Utterance } from "./speech.ts";
import { countWords, readNamedValues } from "./words.ts";

export function planAnswer(turn: Turn): Plan {
  const { items, settings } = turn;
  const outputs = readToolOutputs(items);
  const userText = lastUserText(items);
  // The user's directives were followed before the tools were called.
  const directives = outputs === undefined ? readDirectives(userText) : readDirectives("");
  const { refuses, sleepMs, failure } = directives;
  const asked = outputs === undefined ? directives.text : userText;
  const utterances: Utterance[] = [];
  if (reasons(settings) && asked !== "") {
    const summary = settings.reasoningSummary === undefined ? undefined : 0;
    utterances.push({ type: "reasoning", text: `thinking about: ${asked}`, summary });
  }
  const calls = refuses ? [] : chooseCalls(settings, asked, outputs === undefined);
  if (calls.length > 0) utterances.push(...calls);
  else if (refuses) utterances.push({ type: "refusal", text: asked });
  else utterances.push({ type: "text", text: untilStop(inFormat(outputs ?? asked, settings), settings.stop) });
  return {
    sleepMs,
    failure,
    utterances,
    inputTokens: countInput(turn),
    maxOutputTokens: settings.maxOutputTokens ?? Infinity,
  };
}

/** What the tools said, when they spoke last; messages that only steer may stand after them. */
function readToolOutputs(items: readonly Item[]): string | undefined {
  const talk = items.filter((item) => !isSteering(item));
  const first = talk.findLastIndex((item) => item.type !== "tool-output") + 1;
  if (first === talk.length) return undefined;
  const lines: string[] = [];
  for (const item of talk.slice(first)) {
    if (item.type === "tool-output") lines.push(`tool said: ${tell(item.output)}`);
  }
  return lines.join("\n");
}

function lastUserText(items: readonly Item[]): string {
  for (const item of items.toReversed()) {
    if (item.type === "message" && item.role === "user") return tell(item.content);
  }
  return "";
}

/** The text, or in its absence what else there is, in brackets. */
function tell(content: Content): string {
  const text = textOf(content);
  if (text !== "" || typeof content === "string") return text;
  const told: string[] = [];
  for (const part of content) {
    if (part.type === "image" || part.type === "audio") told.push(`[${part.type}]`);
    if (part.type === "file") told.push(part.name === undefined ? "[file]" : `[file ${part.name}]`);
  }
  return told.join(" ");
}

function reasons({ reasoningEffort }: Settings): boolean {
  return reasoningEffort !== undefined && reasoningEffort !== "none" && reasoningEffort !== "minimal";
}

function inFormat(text: string, { format }: Settings): string {
  switch (format?.type) {
    case undefined:
    case "text":
      return text;
    case "json":
      return toSpacedJson({ echo: text });
    case "schema":
      return toSpacedJson(makeSample(format.schema, { optional: format.strict === true, told: readNamedValues(text) }));
  }
}

/** JSON on one line with blanks, so that it has words to be streamed by. No string in JSON holds a bare line break. */
function toSpacedJson(value: unknown): string {
  return JSON.stringify(value, undefined, 1)
    .replaceAll(/(?<=[{[])\n *|\n *(?=[}\]])/g, "")
    .replaceAll(/\n */g, " ");
}

function untilStop(text: string, stops: readonly string[] = []): string {
  let end = text.length;
  for (const stop of stops) {
    const at = stop === "" ? -1 : text.indexOf(stop);
    if (at !== -1 && at < end) end = at;
  }
  return text.slice(0, end);
}

function countInput({ items, settings }: Turn): number {
  let count = countWords(settings.instructions ?? "");
  for (const item of items) count += countItem(item);
  return count;
}

function countItem(item: Item): number {
  switch (item.type) {
    case "message":
      return countWords(textOf(item.content));
    case "reasoning":
      return countWords(item.text) + item.summary.reduce((sum, section) => sum + countWords(section), 0);
    case "tool-call":
      return countWords(item.arguments);
    case "tool-output":
      return countWords(textOf(item.output));
  }
}
