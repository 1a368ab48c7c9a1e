/** The schemas of an archive's lines. */
import { type TSchema, Type } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { errorCodes } from "../core/errors.ts";
import { finishes } from "../core/turn.ts";

const name = Type.String({ minLength: 1 });
/**
 * Visible ASCII, but no quote and no backslash: ids go into headers and paths, and unescaped into events. Ours are
 * `conv_` or `resp_` and digits, but an operator may have made others.
 */
const id = Type.String({ pattern: "^[!#-\\[\\]-~]{1,255}$" });
/** Base64url, whose decoder would silently skip a wrong character. */
const hash = Type.String({ pattern: "^[A-Za-z0-9_-]{1,255}$" });
const key = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });
const date = Type.String({
  pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?Z$",
});
const counted = Type.Integer({ minimum: 0 });
const code = Type.Enum([...errorCodes]);
const text = Type.Optional(Type.String());
/** An operator's own adapter may have said null. */
const unsaid = Type.Optional(Type.Union([Type.String(), Type.Null()]));
const flag = Type.Optional(Type.Boolean());
const extra = Type.Object({
  dialect: Type.Enum(["chat", "responses"]),
  fields: Type.Record(Type.String(), Type.Unknown()),
});
const annotation = Type.Object({ type: Type.String(), fields: Type.Record(Type.String(), Type.Unknown()) });

const part = Type.Union([
  Type.Object({
    type: Type.Enum(["text", "refusal"]),
    text: Type.String(),
    logprobs: Type.Optional(Type.Array(Type.Unknown())),
    annotations: Type.Optional(Type.Array(annotation)),
    extra: Type.Optional(extra),
  }),
  Type.Object({ type: Type.Literal("image"), url: text, fileId: text, detail: text }),
  Type.Object({ type: Type.Literal("file"), fileId: text, data: text, url: text, name: text }),
  Type.Object({ type: Type.Literal("audio"), data: Type.String(), format: Type.String() }),
  Type.Object({ type: Type.Literal("other"), extra }),
]);
const content = Type.Union([Type.String(), Type.Array(part)]);
const called = {
  name,
  description: text,
  parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  strict: flag,
  deferred: flag,
};
/** Groups may contain groups, but no dialect nests them this deep. */
const maxGroups = 8;
const tools = Type.Array(toToolForm(maxGroups));

function toToolForm(groups: number): TSchema {
  const inner: TSchema = groups === 0 ? Type.Never() : Type.Array(toToolForm(groups - 1));
  return Type.Union([
    Type.Object({ type: Type.Enum(["function", "custom"]), ...called }),
    Type.Object({
      type: Type.Literal("other"),
      name: text,
      group: Type.Optional(Type.Object({ name, description: text, tools: inner })),
      search: Type.Optional(Type.Object({ type: Type.Literal("function"), ...called })),
      extra,
    }),
  ]);
}

const format = Type.Union([
  Type.Object({ type: Type.Enum(["text", "json"]) }),
  Type.Object({
    type: Type.Literal("schema"),
    name,
    description: text,
    schema: Type.Record(Type.String(), Type.Unknown()),
    strict: flag,
  }),
]);

/** What an answer is made of. */
const outputItem = Type.Union([
  Type.Object({
    type: Type.Literal("message"),
    role: Type.Enum(["system", "developer", "user", "assistant"]),
    content,
    name: Type.Optional(Type.String()),
    extra: Type.Optional(extra),
  }),
  Type.Object({
    type: Type.Literal("reasoning"),
    summary: Type.Array(Type.String()),
    text: Type.String(),
    encrypted: Type.Optional(Type.String()),
  }),
  Type.Object({
    type: Type.Literal("tool-call"),
    kind: Type.Enum(["function", "custom", "search"]),
    callId: Type.String(),
    name: Type.String(),
    group: Type.Optional(Type.String()),
    arguments: Type.String(),
    extra: Type.Optional(extra),
  }),
  Type.Object({
    type: Type.Literal("other"),
    extra,
    exchange: Type.Optional(Type.Object({ side: Type.Enum(["model", "tools"]), id: Type.String() })),
    tools: Type.Optional(tools),
    updates: Type.Optional(Type.Object({ reasoningEffort: text, format: Type.Optional(format) })),
    words: Type.Optional(Type.String()),
    steers: flag,
  }),
  Type.Object({
    type: Type.Literal("compaction"),
    summary: Type.String(),
    encrypted: Type.Optional(Type.String()),
  }),
]);

const item = Type.Union([
  outputItem,
  Type.Object({
    type: Type.Literal("tool-output"),
    kind: Type.Enum(["function", "custom", "search"]),
    callId: Type.String(),
    output: content,
    tools: Type.Optional(tools),
    extra: Type.Optional(extra),
  }),
]);

const finish = Type.Enum([...finishes]);
const told = Type.Object({
  session: Type.Optional(id),
  history: Type.Optional(Type.Enum(["new", "continued", "matched", "forked", "foreign", "stateless"])),
  contextItems: Type.Optional(counted),
  omittedItems: counted,
  truncation: Type.Enum(["auto", "disabled"]),
  endedAt: Type.Optional(date),
  finish,
  others: Type.Optional(Type.Array(Type.Object({ finish, items: Type.Array(outputItem) }))),
  notes: Type.Object({ fingerprint: unsaid, serviceTier: unsaid }),
  remarks: Type.Optional(
    Type.Array(
      Type.Union([
        Type.Object({ type: Type.Literal("tried"), adapter: Type.String(), code }),
        Type.Object({ type: Type.Literal("left-out"), what: Type.String() }),
        Type.Object({ type: Type.Literal("changed"), what: Type.String(), to: Type.String() }),
      ]),
    ),
  ),
  background: flag,
  brokenOff: Type.Optional(counted),
  memo: text,
  failure: Type.Optional(
    Type.Object({
      code,
      message: Type.String(),
      param: text,
      wireCode: text,
      retryAfterSeconds: Type.Optional(Type.Union([Type.Number({ minimum: 0 }), Type.Null()])),
    }),
  ),
  pieces: Type.Optional(
    Type.Array(
      Type.Array(
        Type.Object({
          kind: Type.Enum(["text", "refusal", "reasoning", "summary", "arguments", "annotation", "extra"]),
          part: counted,
          lengths: Type.Array(counted),
          logprobs: Type.Optional(Type.Array(counted)),
        }),
      ),
    ),
  ),
});

/** The fields of a memo (JSON text) that a replay of its turn reads; the rest is sent as it is. */
export const memoForm: Validator = Compile(
  Type.Object({
    reasoning: Type.Object({ summary: Type.Union([Type.String(), Type.Null()]) }),
    user: Type.Union([Type.String(), Type.Null()]),
  }),
);

const store = Type.Object({ version: Type.Integer(), hintKey: key, sealKeys: Type.Optional(Type.Array(key)) });
const session = Type.Object({
  id,
  owner: name,
  hint: Type.Optional(hash),
  tip: Type.Optional(id),
  resends: Type.Boolean(),
  metadata: Type.Record(Type.String(), Type.String()),
  createdAt: date,
  updatedAt: date,
});
const turn = Type.Object({
  id,
  owner: name,
  session: Type.Optional(id),
  parent: Type.Optional(id),
  createdAt: date,
  model: Type.String(),
  input: Type.Array(item),
  output: Type.Array(item),
  status: Type.Enum(["completed", "incomplete", "shown", "running", "failed", "cancelled"]),
  usage: Type.Optional(
    Type.Object({
      inputTokens: counted,
      cachedTokens: counted,
      cacheWriteTokens: Type.Optional(counted),
      outputTokens: counted,
      reasoningTokens: counted,
    }),
  ),
  digest: Type.Optional(hash),
  exchange: Type.Optional(hash),
  gap: Type.Optional(Type.Boolean()),
  told: Type.Optional(told),
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
