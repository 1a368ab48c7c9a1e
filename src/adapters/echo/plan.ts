/** Decides what the model says: what tools returned, calls, or the last user text in the wanted format. */
import { type Content, type Item, isSteering, textOf, typeOf } from "../../core/item.ts";
import type { Settings, Turn } from "../../core/turn.ts";
import { chooseCalls } from "./calls.ts";
import { readDirectives } from "./directives.ts";
import type { Plan, Utterance } from "./speech.ts";
import { countWords, readNamedValues } from "./words.ts";

export async function planAnswer(turn: Turn): Promise<Plan> {
  const { items, settings } = turn;
  const outputs = readToolOutputs(items);
  const userText = lastUserText(items);
  // The user's directives were followed before the tools were called.
  const directives = await readDirectives(outputs === undefined ? userText : "");
  const { refuses, sleepMs, failure } = directives;
  const asked = outputs === undefined ? directives.text : userText;
  const utterances: Utterance[] = [];
  if (reasons(settings) && asked !== "") {
    const summary = settings.reasoningSummary === undefined ? undefined : 0;
    utterances.push({ type: "reasoning", text: `thinking about: ${asked}`, summary });
  }
  const calls = refuses ? [] : await chooseCalls(settings, asked, outputs === undefined);
  for (const call of calls) utterances.push(call);
  if (refuses) {
    utterances.push({ type: "refusal", text: asked });
  } else if (calls.length === 0) {
    utterances.push({ type: "text", text: untilStop(await inFormat(outputs ?? asked, settings), settings.stop) });
  }
  return {
    sleepMs,
    failure,
    utterances,
    inputTokens: await countWords(textsOf(turn)),
    maxOutputTokens: settings.maxOutputTokens ?? Infinity,
  };
}

/** What the tools said, if they spoke last; steering messages may follow. */
function readToolOutputs(items: readonly Item[]): string | undefined {
  const talk = items.filter((item) => !isSteering(item));
  const first = talk.findLastIndex((item) => item.type !== "tool-output") + 1;
  const outputs = talk.slice(first).filter((item) => item.type === "tool-output");
  if (outputs.length === 0) return undefined;
  return outputs.map(({ output }) => `tool said: ${describeContent(output)}`).join("\n");
}

function lastUserText(items: readonly Item[]): string {
  for (const item of items.toReversed()) {
    if (item.type === "message" && item.role === "user") return describeContent(item.content);
  }
  return "";
}

/** The text or, failing that, what else there is, in brackets. */
function describeContent(content: Content): string {
  const text = textOf(content);
  if (text !== "" || typeof content === "string") return text;
  const told: string[] = [];
  for (const part of content) {
    if (part.type === "image" || part.type === "audio") told.push(`[${part.type}]`);
    if (part.type === "file") told.push(part.name === undefined ? "[file]" : `[file ${part.name}]`);
    if (part.type === "other") told.push(`[${typeOf(part.extra)}]`);
  }
  return told.join(" ");
}

function reasons({ reasoningEffort }: Settings): boolean {
  return reasoningEffort !== undefined && reasoningEffort !== "none" && reasoningEffort !== "minimal";
}

async function inFormat(text: string, { format }: Settings): Promise<string> {
  switch (format?.type) {
    case undefined:
    case "text":
      return text;
    case "json":
      return toSpacedJson({ echo: text });
    case "schema": {
      const { makeSample } = await import("./sample.ts");
      const told = await readNamedValues(text);
      return toSpacedJson(makeSample(format.schema, { optional: format.strict === true, told }));
    }
  }
}

/** JSON on one line with spaces, so that it streams word by word. No JSON string contains a bare line break. */
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

/** Everything the model reads, counted as its input tokens. */
function* textsOf({ items, settings }: Turn): Generator<string, void, void> {
  yield settings.instructions ?? "";
  for (const item of items) {
    switch (item.type) {
      case "message":
        yield textOf(item.content);
        break;
      case "reasoning":
        yield item.text;
        yield* item.summary;
        break;
      case "tool-call":
        yield item.arguments;
        break;
      case "tool-output":
        yield textOf(item.output);
    }
  }
}
