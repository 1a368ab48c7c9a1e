/** What the lines of an archive must look like. */
import { type TSchema, Type } from "typebox";

const name = Type.String({ minLength: 1 });
/** Visible ASCII: ids stand in headers and paths. Ours are `conv_` or `resp_` and digits, but an operator may have made others. */
const id = Type.String({ pattern: "^[!-~]{1,255}$" });
/** Base64url, in which a wrong character would only be passed over. */
const hash = Type.String({ pattern: "^[A-Za-z0-9_-]{1,255}$" });
const key = Type.String({ pattern: "^[A-Za-z0-9_-]{43}$" });
const date = Type.String({
  pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?Z$",
});
const counted = Type.Integer({ minimum: 0 });
const extra = Type.Object({
  dialect: Type.Enum(["chat", "responses"]),
  fields: Type.Record(Type.String(), Type.Unknown()),
});
const annotation = Type.Object({ type: Type.String(), fields: Type.Record(Type.String(), Type.Unknown()) });

const part = Type.Union([
  Type.Object({
    type: Type.Enum(["text", "refusal"]),
    text: Type.String(),
    annotations: Type.Optional(Type.Array(annotation)),
    extra: Type.Optional(extra),
  }),
  Type.Object({ type: Type.Enum(["image", "file"]) }),
  Type.Object({ type: Type.Literal("audio"), data: Type.String(), format: Type.String() }),
  Type.Object({ type: Type.Literal("other"), extra }),
]);
const content = Type.Union([Type.String(), Type.Array(part)]);
const called = Type.Object({ type: Type.Enum(["function", "custom"]), name });
const uncalled = { type: Type.Literal("other"), extra };
const group = Type.Object({ name, tools: Type.Array(Type.Union([called, Type.Object(uncalled)])) });
const search = Type.Object({ type: Type.Literal("function"), name });
const tools = Type.Array(
  Type.Union([called, Type.Object({ ...uncalled, group: Type.Optional(group), search: Type.Optional(search) })]),
);
const item = Type.Union([
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
    type: Type.Literal("tool-output"),
    kind: Type.Enum(["function", "custom", "search"]),
    callId: Type.String(),
    output: content,
    tools: Type.Optional(tools),
    extra: Type.Optional(extra),
  }),
  Type.Object({
    type: Type.Literal("other"),
    extra,
    exchange: Type.Optional(Type.Object({ side: Type.Enum(["model", "tools"]), id: Type.String() })),
    tools: Type.Optional(tools),
    words: Type.Optional(Type.String()),
  }),
  Type.Object({
    type: Type.Literal("compaction"),
    summary: Type.String(),
    encrypted: Type.Optional(Type.String()),
  }),
]);

const told = Type.Object({
  session: Type.Optional(id),
  history: Type.Optional(Type.Enum(["new", "continued", "matched", "forked", "foreign", "stateless"])),
  contextItems: Type.Optional(counted),
  omittedItems: counted,
  truncation: Type.Enum(["auto", "disabled"]),
  endedAt: Type.Optional(date),
  finish: Type.Enum(["stop", "length", "content-filter", "tool-calls"]),
  notes: Type.Object({}),
  remarks: Type.Optional(
    Type.Array(
      Type.Union([
        Type.Object({ type: Type.Literal("tried"), adapter: Type.String(), code: Type.String() }),
        Type.Object({ type: Type.Literal("left-out"), what: Type.String() }),
        Type.Object({ type: Type.Literal("changed"), what: Type.String(), to: Type.String() }),
      ]),
    ),
  ),
  memo: Type.Optional(Type.String()),
  failure: Type.Optional(Type.Object({ code: name, message: Type.String() })),
  pieces: Type.Optional(
    Type.Array(Type.Array(Type.Object({ kind: name, part: counted, lengths: Type.Array(counted) }))),
  ),
});

/** What a line of each type must hold. What it holds beside that is kept as it is. */
export const forms: Readonly<Record<string, TSchema>> = {
  portico: Type.Object({ version: Type.Integer(), hintKey: key, sealKeys: Type.Optional(Type.Array(key)) }),
  session: Type.Object({
    id,
    owner: name,
    hint: Type.Optional(hash),
    tip: Type.Optional(id),
    resends: Type.Boolean(),
    metadata: Type.Record(Type.String(), Type.String()),
    createdAt: date,
    updatedAt: date,
  }),
  turn: Type.Object({
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
      Type.Object({ inputTokens: counted, cachedTokens: counted, outputTokens: counted, reasoningTokens: counted }),
    ),
    digest: Type.Optional(hash),
    exchange: Type.Optional(hash),
    gap: Type.Optional(Type.Boolean()),
    told: Type.Optional(told),
  }),
  end: Type.Object({}),
};
