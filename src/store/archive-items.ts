/** The items and answers of an archive: every type with every field that it has in the core. */
import type { Annotation, Content, Item, OtherItem, Part } from "../core/item.ts";
import type { Extra, FunctionTool, Tool, ToolGroup } from "../core/settings.ts";
import type { Notes, Remark, Usage } from "../core/turn.ts";
import {
  type Check,
  checks,
  isAnything,
  isCount,
  isFields,
  isFlag,
  isText,
  later,
  listOf,
  matches,
  nullable,
  oneOf,
  oneOfTypes,
  optional,
  shaped,
  type Shape,
  textOr,
} from "./checks.ts";
import type { Failure, Told } from "./rows.ts";

/** The last millisecond of the year 9999: a later one has a five-digit year. */
const lastMoment = Date.UTC(10_000, 0) - 1;

/** Milliseconds since 1970. */
const isMoment = checks<number>(
  (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= lastMoment,
);
const isName = matches<string>(/./s);

const isExtra = shaped<Extra>({
  dialect: oneOf("chat", "responses"),
  source: optional(isText),
  fields: isFields,
});
const extra = optional(isExtra);

const isAnnotation = shaped<Annotation>({ type: isText, fields: isFields });

const isPart = oneOfTypes<Part>({
  text: {
    text: isText,
    logprobs: optional(listOf(isAnything)),
    annotations: optional(listOf(isAnnotation)),
    extra,
  },
  refusal: { text: isText, extra },
  image: { url: optional(isText), fileId: optional(isText), detail: optional(isText), extra },
  audio: { data: isText, format: isText, extra },
  file: {
    fileId: optional(isText),
    data: optional(isText),
    url: optional(isText),
    name: optional(isText),
    extra,
  },
  other: { extra: isExtra },
});
const isContent: Check<Content> = textOr(listOf(isPart));

const namedTool = { name: isText, description: optional(isText), deferred: optional(isFlag) };
const functionTool: Shape<Omit<FunctionTool, "type">> = {
  ...namedTool,
  parameters: optional(isFields),
  strict: optional(isFlag),
};

const isTool: Check<Tool> = oneOfTypes<Tool>({
  function: functionTool,
  custom: { ...namedTool, format: isAnything },
  other: {
    name: optional(isText),
    group: optional(
      shaped<ToolGroup>({ name: isText, description: optional(isText), tools: listOf(later(() => isTool)) }),
    ),
    search: optional(shaped<FunctionTool>({ ...functionTool, type: oneOf("function") })),
    extra: isExtra,
  },
});
const tools = optional(listOf(isTool));

const base = { id: optional(isText), extra };
const kind = oneOf("function", "custom", "search");

/** References are resolved before anything is stored, so none is accepted. */
const isNever = checks<string>(() => false);

const isPresentItem = oneOfTypes<Item>({
  message: {
    ...base,
    role: oneOf("system", "developer", "user", "assistant"),
    content: isContent,
    name: optional(isText),
  },
  reasoning: { ...base, summary: listOf(isText), text: isText, encrypted: optional(isText) },
  "tool-call": { ...base, kind, callId: isName, name: isText, group: optional(isText), arguments: isText },
  "tool-output": { ...base, kind, callId: isName, output: isContent, tools },
  reference: { id: isNever },
  compaction: { id: optional(isText), summary: isText, encrypted: optional(isText) },
  other: {
    ...base,
    extra: isExtra,
    exchange: optional(shaped<NonNullable<OtherItem["exchange"]>>({ side: oneOf("model", "tools"), id: isText })),
    tools,
  },
});

/** Null stands where an item was deleted. */
export const isItem = nullable(isPresentItem);

const isRemark = oneOfTypes<Remark>({
  tried: { adapter: isText, code: isText },
  "left-out": { what: isText },
  changed: { what: isText, to: isText },
  asked: { adapter: isText, model: isText },
});

export const isTold = shaped<Told>({
  status: oneOf("completed", "incomplete", "failed", "cancelled"),
  finish: oneOf("stop", "length", "content-filter", "tool-calls", "interrupted"),
  extra,
  usage: optional(
    shaped<Usage>({
      inputTokens: isCount,
      cachedTokens: isCount,
      cacheWriteTokens: optional(isCount),
      outputTokens: isCount,
      reasoningTokens: isCount,
    }),
  ),
  error: optional(shaped<Failure>({ code: isText, message: isText, param: nullable(isText), wireCode: isText })),
  notes: shaped<Notes>({ fingerprint: optional(isText), serviceTier: optional(isText), extra }),
  endedAt: isMoment,
  isBrokenOff: optional(isFlag),
  remarks: optional(listOf(isRemark)),
});
