/** What a line of each type in an archive must hold. What else is in it is kept as it is. */
import { type TProperties, Type } from "typebox";
import { Compile, type Validator } from "typebox/compile";

const { Array: list, Optional: optional } = Type;
const words = Type.String();
const text = optional(words);
const counted = Type.Integer({ minimum: 0 });
const name = Type.String({ minLength: 1 });
const key = Type.String({ pattern: "^[0-9a-f]{25}$" });
const session = Type.String({ pattern: "^conv_[0-9a-f]{48}$" });
const secret = Type.String({ pattern: "^[0-9a-f]{64}$" });
const mark = optional(Type.String({ pattern: "^[A-Za-z0-9+/=_-]{1,64}$" }));
const date = Type.String({
  pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,3})?Z$",
});
const fields = Type.Record(words, Type.Unknown());
const extra = optional(Type.Object({ dialect: Type.Enum(["chat", "responses"]), source: text, fields }));

function typed<Rest extends TProperties>(types: readonly string[], rest: Rest) {
  return Type.Object({ type: Type.Enum([...types]), ...rest });
}

const part = Type.Union([
  typed(["text", "refusal"], { text: words, extra }),
  typed(["image", "file"], { url: text, fileId: text, data: text, detail: text, name: text, extra }),
  typed(["audio"], { data: words, format: words, extra }),
  typed(["other"], { extra }),
]);
const content = Type.Union([words, list(part)]);
const kind = Type.Enum(["function", "custom", "search"]);
const pair = Type.Object({ side: Type.Enum(["model", "tools"]), id: words });
const tools = optional(list(fields));
const item = Type.Union([
  Type.Null(),
  typed(["message"], {
    id: text,
    role: Type.Enum(["system", "developer", "user", "assistant"]),
    content,
    name: text,
    extra,
  }),
  typed(["reasoning"], { id: text, summary: list(words), text: words, encrypted: text, extra }),
  typed(["tool-call"], { id: text, kind, callId: words, name: words, group: text, arguments: words, extra }),
  typed(["tool-output"], { id: text, kind, callId: words, output: content, tools, extra }),
  typed(["compaction"], { id: text, summary: words, encrypted: text }),
  typed(["other"], {
    id: text,
    extra: Type.Object({ dialect: words, fields }),
    exchange: optional(pair),
    tools,
    words: text,
  }),
]);
const told = Type.Object({
  status: Type.Enum(["completed", "incomplete", "failed", "cancelled"]),
  finish: Type.Enum(["stop", "length", "content-filter", "tool-calls"]),
  notes: fields,
  usage: optional(Type.Record(words, counted)),
  error: optional(Type.Object({ code: words, message: words, wireCode: words })),
  extra,
  endedAt: Type.Number(),
});

/** Compiled, they are thirty times as fast, and no request is served while a long line is checked. */
export const forms: Readonly<Record<string, Validator>> = {
  portico: Compile(
    Type.Object({ version: counted, hintKeys: list(secret, { minItems: 1 }), sealKeys: list(secret, { minItems: 1 }) }),
  ),
  session: Compile(
    Type.Object({
      id: session,
      owner: name,
      kind: Type.Enum(["hidden", "hinted", "named"]),
      shows: Type.Boolean(),
      tip: optional(key),
      metadata: Type.Record(words, words),
      createdAt: date,
      usedAt: date,
    }),
  ),
  turn: Compile(
    Type.Object({
      id: key,
      owner: name,
      session,
      parent: optional(key),
      depth: Type.Integer({ minimum: 1 }),
      remembers: Type.Boolean(),
      question: mark,
      digest: mark,
      createdAt: date,
      model: words,
      input: list(item),
      answer: list(item),
      told: optional(told),
      echo: text,
    }),
  ),
  end: Compile(Type.Object({})),
};
