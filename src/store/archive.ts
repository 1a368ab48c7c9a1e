/** The lines of an archive, each checked down to its fields before anything of it is stored. */
import { setImmediate as nextTick } from "node:timers/promises";
import { type Static, type TProperties, Type } from "typebox";
import { Compile, type Validator } from "typebox/compile";
import { GatewayError } from "../core/errors.ts";
import { readLines } from "./lines.ts";
import { archiveVersion as version } from "./schema.ts";

const { Array: list, Optional: optional } = Type;
const words = Type.String();
const text = optional(words);
const counted = Type.Integer({ minimum: 0 });
const name = Type.String({ minLength: 1 });
const key = Type.String({ pattern: "^[0-9a-f]{25}$" });
const session = Type.String({ pattern: "^conv_[0-9a-f]{48}$" });
const secrets = list(Type.String({ pattern: "^[0-9a-f]{64}$" }), { minItems: 1 });
const mark = optional(Type.String({ pattern: "^[A-Za-z0-9+/=_-]{1,64}$" }));
const date = Type.String({
  pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,3})?Z$",
});
const fields = Type.Record(words, Type.Unknown());

/** Every item may have an id and what its dialect adds. */
function typed<Rest extends TProperties>(type: string, rest: Rest) {
  const extra = optional(Type.Object({ dialect: Type.Enum(["chat", "responses"]), source: text, fields }));
  return Type.Object({ type: Type.Literal(type), id: text, extra, ...rest });
}

const kind = Type.Enum(["function", "custom", "search"]);
const role = Type.Enum(["system", "developer", "user", "assistant"]);
const part = Type.Object({ type: Type.Enum(["text", "refusal", "image", "file", "audio", "other"]), text });
const content = Type.Union([words, list(part)]);
/** Where one was deleted a null stands. */
const items = list(
  Type.Union([
    Type.Null(),
    typed("message", { role, content, name: text }),
    typed("reasoning", { summary: list(words), text: words, encrypted: text }),
    typed("tool-call", { kind, callId: words, name: words, group: text, arguments: words }),
    typed("tool-output", { kind, callId: words, output: content, tools: optional(list(fields)) }),
    typed("compaction", { summary: words, encrypted: text }),
    typed("other", {
      exchange: optional(Type.Object({ side: Type.Enum(["model", "tools"]), id: words })),
      words: text,
    }),
  ]),
);
const told = Type.Object({
  status: Type.Enum(["completed", "incomplete", "failed", "cancelled"]),
  finish: Type.Enum(["stop", "length", "content-filter", "tool-calls"]),
  notes: fields,
  usage: optional(Type.Record(words, counted)),
  error: optional(Type.Object({ code: words, message: words, wireCode: words })),
  endedAt: Type.Number(),
});

/** Without the keys no hint is recognised again, and nothing opens that clients carry sealed. The store's own come first. */
const headForm = Type.Object({ version: counted, hintKeys: secrets, sealKeys: secrets });

/** Its turns follow it, each after the one that it follows. */
const sessionForm = Type.Object({
  id: session,
  owner: name,
  kind: Type.Enum(["hidden", "hinted", "named"]),
  shows: Type.Boolean(),
  tip: optional(key),
  metadata: Type.Record(words, words),
  createdAt: date,
  usedAt: date,
});

/** What was deleted, and holds the tree together, has nothing to tell. */
const turnForm = Type.Object({
  id: key,
  owner: name,
  session,
  parent: optional(key),
  remembers: Type.Boolean(),
  question: mark,
  digest: mark,
  createdAt: date,
  model: words,
  input: items,
  answer: items,
  told: optional(told),
  echo: text,
});

export type HeadLine = { readonly type: "portico" } & Static<typeof headForm>;
export type SessionLine = { readonly type: "session" } & Static<typeof sessionForm>;
export type TurnLine = { readonly type: "turn" } & Static<typeof turnForm>;
export type Line = HeadLine | SessionLine | TurnLine | { readonly type: "end" };

/** Compiled, they are thirty times as fast. */
const forms: Readonly<Record<string, Validator>> = {
  portico: Compile(headForm),
  session: Compile(sessionForm),
  turn: Compile(turnForm),
  end: Compile(Type.Object({})),
};

/** Throws with the number of the line that is wrong. */
export async function checkArchive(path: string): Promise<void> {
  let number = 0;
  let last = "";
  for (const line of readLines(path)) {
    number += 1;
    // Requests go on between two lines.
    if (number % 16 === 0) await nextTick();
    if (line === "") continue;
    if (last === "end") throw wrongLine(number, "comes after the end of the archive");
    const type = checkLine(number, line);
    if ((last === "") !== (type === "portico"))
      throw wrongLine(number, 'is out of place: the first line, and only that, has the type "portico"');
    last = type;
  }
  if (last === "") throw refuse("The archive is empty.");
  if (last !== "end") throw refuse("The archive was cut off: its last line, which marks its end, is missing.");
}

/** Its type. */
function checkLine(number: number, text: string): string {
  const line = parse(number, text);
  if (typeof line !== "object" || line === null || !("type" in line) || typeof line.type !== "string")
    throw wrongLine(number, "is not an object with a 'type'");
  const form = Object.hasOwn(forms, line.type) ? forms[line.type] : undefined;
  if (form === undefined) throw wrongLine(number, `has the unknown type ${JSON.stringify(line.type)}`);
  if (line.type === "portico" && "version" in line && line.version !== version)
    throw wrongLine(number, `has version ${String(line.version)}, but this release reads version ${version}`);
  if (!form.Check(line)) throw wrongLine(number, describeMisfit(form, line));
  return line.type;
}

function parse(number: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw wrongLine(number, "is not JSON; it may have been cut off, or is compressed");
  }
}

function describeMisfit(form: Validator, value: unknown): string {
  const errors = form.Errors(value);
  const misfit = errors.find(({ keyword }) => keyword === "anyOf") ?? errors[0];
  const path = misfit?.instancePath.slice(1).replaceAll("/", ".") ?? "";
  // Of an item that has none of the known forms the errors of each form say little.
  const isInUnion = misfit?.keyword === "anyOf" || misfit?.schemaPath.includes("/anyOf/") === true;
  const what = isInUnion ? "has no known form" : misfit?.message;
  return path === "" ? String(what) : `has an invalid field: '${path}' ${what}`;
}

function wrongLine(number: number, what: string): GatewayError {
  return refuse(`Line ${number} of the archive ${what}.`);
}

function refuse(what: string): GatewayError {
  return new GatewayError("invalid_value", `${what} Nothing was imported.`);
}
