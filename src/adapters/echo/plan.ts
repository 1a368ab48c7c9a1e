/** Decides what the model says: what tools returned, calls, or the last user text in the wanted format, as its directives say. */
import { GatewayError, isErrorCode } from "../../core/errors.ts";
import { type Content, isInstruction, type Item, textOf } from "../../core/item.ts";
import type { Settings, Tool } from "../../core/settings.ts";
import type { Turn } from "../../core/turn.ts";
import { makeSample } from "./sample.ts";

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
  | { readonly type: "call"; readonly kind: "function" | "custom"; readonly name: string; readonly text: string };

export function planAnswer({ items, settings }: Turn): Plan {
  const outputs = readToolOutputs(items);
  const question = describe(items.findLast((item) => item.type === "message" && item.role === "user"));
  // The user's directives were followed before the tools were called.
  const { text, refuses, maxWords, ...directed } =
    outputs === undefined ? readDirectives(question) : { ...undirected, text: question };
  const { instructions = "", reasoningEffort: effort = "none", reasoningSummary, maxOutputTokens } = settings;
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
    ...directed,
    maxWords: Math.min(maxWords, maxOutputTokens ?? Infinity),
    utterances,
    inputTokens: items.reduce((sum, item) => sum + wordsIn(textOf(contentOf(item))), wordsIn(instructions)),
  };
}

/** What the tools said, if they spoke last. */
function readToolOutputs(items: readonly Item[]): string | undefined {
  const talk = items.filter((item) => !isInstruction(item));
  const outputs = talk.slice(talk.findLastIndex(({ type }) => type !== "tool-output") + 1);
  return outputs.length === 0 ? undefined : outputs.map((output) => `tool said: ${describe(output)}`).join("\n");
}

/** The text or, failing that, what else there is, in brackets. */
function describe(item: Item | undefined): string {
  const content = contentOf(item);
  const text = textOf(content);
  return text !== "" || typeof content === "string" ? text : content.map(({ type }) => `[${type}]`).join(" ");
}

function contentOf(item: Item | undefined): Content {
  return item?.type === "message" ? item.content : item?.type === "tool-output" ? item.output : "";
}

const directive =
  /^(?:FAIL before|FAIL after (?<words>\d{1,6})|ERROR (?<code>adapter_\w+|overloaded)|SLEEP (?<ms>\d{1,6}))(?:\s+|$)/;
const refusal = /^REFUSE\s+(?=\S)/;

const undirected = { refuses: false, sleepMs: 0, failure: undefined, maxWords: Infinity } as const;

/** They stand in front of the text, each on its own line or not; REFUSE is the last. */
function readDirectives(said: string) {
  let text = said;
  let { sleepMs, failure, maxWords }: Pick<Plan, "sleepMs" | "failure" | "maxWords"> = undirected;
  for (let match = directive.exec(text); match !== null; match = directive.exec(text)) {
    const { code, words = 0, ms } = match.groups ?? {};
    text = text.slice(match[0].length);
    if (ms === undefined) [failure, maxWords] = [fail(code), Number(words)];
    else sleepMs = Number(ms);
  }
  const answer = text.replace(refusal, "");
  return { text: answer, refuses: answer !== text, sleepMs, failure, maxWords };
}

function fail(code: string | undefined): GatewayError {
  return new GatewayError(
    isErrorCode(code) ? code : "adapter_error",
    "The echo adapter failed, because the user text told it to.",
  );
}

/** Each line `CALL name arguments` of a text that `mayAsk`; the first tool if the tool choice demands a call and there is none. */
function chooseCalls(settings: Settings, text: string, mayAsk: boolean): readonly Utterance[] {
  const { toolChoice: choice, parallelToolCalls } = settings;
  const isDemanded = choice?.type === "required" || choice?.type === "tool";
  if (choice?.type === "none" || !(mayAsk || isDemanded)) return [];
  const tools = settings.tools
    .filter((tool) => tool.type !== "other")
    .filter(({ name }) => choice?.type !== "tool" || name === choice.name);
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  const calls: Utterance[] = [];
  for (const [, name = "", written = ""] of text.matchAll(/^CALL[ \t]+(\S+)(.*)$/gm)) {
    const tool = named.get(name);
    if (tool !== undefined) calls.push(toCall(tool, written.trim()));
  }
  const [first] = tools;
  if (calls.length === 0 && isDemanded && first !== undefined)
    calls.push(toCall(first, first.type === "custom" ? text : ""));
  return parallelToolCalls === false ? calls.slice(0, 1) : calls;
}

/** Written arguments go out as they are, even wrong ones: a client's author must see how it handles them. */
function toCall(tool: Exclude<Tool, { type: "other" }>, written: string): Utterance {
  const { type: kind, name } = tool;
  if (written !== "" || tool.type === "custom") return { type: "call", kind, name, text: written };
  return { type: "call", kind, name, text: JSON.stringify(makeSample({ type: "object", ...tool.parameters })) };
}

function inFormat(text: string, { format }: Settings): string {
  if (format?.type === "json") return toSpacedJson({ echo: text });
  return format?.type === "schema" ? toSpacedJson(makeSample(format.schema)) : text;
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
