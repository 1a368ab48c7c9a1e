/** The schemas of an archive's lines. */
import { type TProperties, type TSchema, Type } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { errorCodes } from "../core/errors.ts";
import { finishes } from "../core/turn.ts";

const { Array: list, Optional: optional } = Type;
const words = Type.String();
const text = optional(words);
const name = Type.String({ minLength: 1 });
/**
 * Visible ASCII, but no quote and no backslash: ids go into headers and paths, and unescaped into events. Ours are
 * `conv_` or `resp_` and digits, but an operator may have made others.
 */
const id = Type.String({ pattern: "^[!#-\\[\\]-~]{1,255}$" });
/** Base64url, whose decoder would silently skip a wrong character, or a last one that stands alone. */
const hash = Type.String({ pattern: "^([A-Za-z0-9_-]{4}){0,62}[A-Za-z0-9_-]{2,4}$" });
const key = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });
const date = Type.String({
  pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?Z$",
});
const counted = Type.Integer({ minimum: 0 });
const code = Type.Enum([...errorCodes]);
/** An operator's own adapter may have said null. */
const unsaid = optional(Type.Union([words, Type.Null()]));
const flag = optional(Type.Boolean());
const fields = Type.Record(words, Type.Unknown());
const extra = Type.Object({ dialect: Type.Enum(["chat", "responses"]), source: text, fields });

/** What has one of these types, and what else it must have. */
function typed<Rest extends TProperties>(types: string | readonly string[], rest: Rest) {
  return Type.Object({ type: typeof types === "string" ? Type.Literal(types) : Type.Enum([...types]), ...rest });
}

const part = Type.Union([
  typed(["text", "refusal"], {
    text: words,
    logprobs: optional(list(Type.Unknown())),
    annotations: optional(list(Type.Object({ type: words, fields }))),
    extra: optional(extra),
  }),
  typed("image", { url: text, fileId: text, detail: text, extra: optional(extra) }),
  typed("file", { fileId: text, data: text, url: text, name: text, extra: optional(extra) }),
  typed("audio", { data: words, format: words, extra: optional(extra) }),
  typed("other", { extra }),
]);
const content = Type.Union([words, list(part)]);
const called = { name, description: text, parameters: optional(fields), strict: flag, deferred: flag };
/** Groups may contain groups, but no dialect nests them this deep. */
const maxGroups = 8;
const tools = list(toToolForm(maxGroups));

function toToolForm(groups: number): TSchema {
  const inner: TSchema = groups === 0 ? Type.Never() : list(toToolForm(groups - 1));
  return Type.Union([
    typed(["function", "custom"], called),
    typed("other", {
      name: text,
      group: optional(Type.Object({ name, description: text, tools: inner })),
      search: optional(typed("function", called)),
      extra,
    }),
  ]);
}

const format = Type.Union([
  typed(["text", "json"], {}),
  typed("schema", { name, description: text, schema: fields, strict: flag }),
]);

const callKind = Type.Enum(["function", "custom", "search"]);

const said = [
  typed("message", {
    role: Type.Enum(["system", "developer", "user", "assistant"]),
    content,
    name: text,
    extra: optional(extra),
  }),
  typed("reasoning", { summary: list(words), text: words, encrypted: text, extra: optional(extra) }),
  typed("tool-call", {
    kind: callKind,
    callId: words,
    name: words,
    group: text,
    arguments: words,
    extra: optional(extra),
  }),
  typed("other", {
    extra,
    exchange: optional(Type.Object({ side: Type.Enum(["model", "tools"]), id: words })),
    tools: optional(tools),
    updates: optional(Type.Object({ reasoningEffort: text, format: optional(format) })),
    words: text,
    steers: flag,
  }),
] as const;
const toolOutput = typed("tool-output", {
  kind: callKind,
  callId: words,
  output: content,
  tools: optional(tools),
  extra: optional(extra),
});
const compacted = { summary: words, encrypted: text };
const kept = optional(list(Type.Union([...said, toolOutput, typed("compaction", compacted)])));

/** What an answer is made of. */
const outputItem = Type.Union([...said, typed("compaction", { ...compacted, kept })]);

const item = Type.Union([outputItem, toolOutput]);

const finish = Type.Enum([...finishes]);
const piece = Type.Object({
  kind: Type.Enum(["text", "refusal", "reasoning", "summary", "arguments", "annotation", "extra"]),
  part: counted,
  lengths: list(counted),
  logprobs: optional(list(counted)),
});
const remark = Type.Union([
  typed("tried", { adapter: words, code }),
  typed("left-out", { what: words }),
  typed("changed", { what: words, to: words }),
]);
const failure = Type.Object({
  code,
  message: words,
  param: text,
  wireCode: text,
  retryAfterSeconds: optional(Type.Union([Type.Number({ minimum: 0 }), Type.Null()])),
});
const told = Type.Object({
  session: optional(id),
  history: optional(Type.Enum(["new", "continued", "matched", "forked", "foreign", "stateless"])),
  contextItems: optional(counted),
  omittedItems: counted,
  truncation: Type.Enum(["auto", "disabled"]),
  endedAt: optional(date),
  finish,
  others: optional(list(Type.Object({ finish, items: list(outputItem), extra: optional(extra) }))),
  extra: optional(extra),
  notes: Type.Object({ fingerprint: unsaid, serviceTier: unsaid, extra: optional(extra) }),
  remarks: optional(list(remark)),
  background: flag,
  brokenOff: optional(counted),
  memo: text,
  failure: optional(failure),
  pieces: optional(list(list(piece))),
});

/** The fields of a memo (JSON text) that a replay of its turn reads; the rest is sent as it is. */
export const memoForm: Validator = Compile(
  Type.Object({
    reasoning: Type.Object({ summary: Type.Union([words, Type.Null()]) }),
    user: Type.Union([words, Type.Null()]),
  }),
);

const store = Type.Object({ version: Type.Integer(), hintKey: key, sealKeys: optional(list(key)) });
const session = Type.Object({
  id,
  owner: name,
  hint: optional(hash),
  tip: optional(id),
  resends: Type.Boolean(),
  metadata: Type.Record(words, words),
  createdAt: date,
  updatedAt: date,
});
const usage = Type.Object({
  inputTokens: counted,
  cachedTokens: counted,
  cacheWriteTokens: optional(counted),
  outputTokens: counted,
  reasoningTokens: counted,
});
const turn = Type.Object({
  id,
  owner: name,
  session: optional(id),
  parent: optional(id),
  createdAt: date,
  model: words,
  input: list(item),
  output: list(item),
  status: Type.Enum(["completed", "incomplete", "shown", "running", "failed", "cancelled"]),
  usage: optional(usage),
  digest: optional(hash),
  exchange: optional(hash),
  gap: flag,
  told: optional(told),
});

/**
 * What a line of each type must contain; anything else in it is kept as it is. Compiled, they are thirty times as fast,
 * and no request is served while a long line is validated.
 */
export const forms: Readonly<Record<string, Validator>> = {
  portico: Compile(store),
  session: Compile(session),
  turn: Compile(turn),
  end: Compile(Type.Object({})),
};
