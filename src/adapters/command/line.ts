/** Reads one line of a program's JSON Lines: a delta, a whole tool call, or an error that the program reports. */
import type { Delta } from "../../core/delta.ts";
import { GatewayError } from "../../core/errors.ts";
import { finishes } from "../../core/turn.ts";
import { reportableCodes, toWholeSeconds } from "../failures.ts";
import { isCount, isObject, type JsonObject as Fields, parseJson } from "../json.ts";

export function createLineReader(): (line: string, deltas: Delta[]) => void {
  const calls: Calls = { newest: -1 };
  return (line, deltas) => {
    const fields = parseJson(line);
    const read = findReader(fields);
    if (read === undefined || !isObject(fields)) throw garbage(line, "it is not a JSON object of a known type");
    read(fields, deltas, calls);
  };
}

/** Whether a program whose first line this is writes JSON Lines. */
export function isSpoken(line: string): boolean {
  return findReader(parseJson(line)) !== undefined;
}

function findReader(spoken: unknown): ReadLine | undefined {
  return isObject(spoken) ? readers.get(spoken["type"]) : undefined;
}

/** Calls without an index are counted as they come; arguments without one belong to the newest call. */
interface Calls {
  newest: number;
}

type ReadLine = (fields: Fields, deltas: Delta[], calls: Calls) => void;

const readers: ReadonlyMap<unknown, ReadLine> = new Map<unknown, ReadLine>(
  Object.entries({
    text: (fields, deltas) => deltas.push({ type: "text", text: requireText(fields, "text") }),
    refusal: (fields, deltas) => deltas.push({ type: "refusal", text: requireText(fields, "text") }),
    reasoning(fields, deltas) {
      deltas.push({ type: "reasoning", text: requireText(fields, "text"), summary: countAt(fields, "summary") });
    },
    "tool-call": readCall,
    "tool-arguments"(fields, deltas, { newest }) {
      const index = countAt(fields, "index") ?? Math.max(newest, 0);
      deltas.push({ type: "tool-arguments", index, text: requireText(fields, "text") });
    },
    usage(fields, deltas) {
      const usage = {
        inputTokens: countAt(fields, "input_tokens") ?? 0,
        cachedTokens: countAt(fields, "cached_tokens") ?? 0,
        outputTokens: countAt(fields, "output_tokens") ?? 0,
        reasoningTokens: countAt(fields, "reasoning_tokens") ?? 0,
      };
      deltas.push({ type: "usage", usage });
    },
    finish: (fields, deltas) => deltas.push({ type: "finish", reason: choiceAt(fields, "reason", finishes) ?? "stop" }),
    error(fields) {
      const code = choiceAt(fields, "code", reportableCodes) ?? "adapter_error";
      const message = requireText(fields, "message");
      const retryAfterSeconds = valueAt(fields, "retry_after_seconds", "a number of seconds", toWholeSeconds);
      throw new GatewayError(code, message, { retryAfterSeconds });
    },
  }),
);

function readCall(fields: Fields, deltas: Delta[], calls: Calls): void {
  const index = (calls.newest = countAt(fields, "index") ?? calls.newest + 1);
  const kind = choiceAt(fields, "kind", ["function", "custom"]);
  const callId = textAt(fields, "call_id");
  deltas.push({ type: "tool-call", index, callId, name: requireText(fields, "name"), kind });
  const { arguments: written } = fields;
  if (written === undefined || written === null) return;
  const text = typeof written === "string" ? written : JSON.stringify(written);
  deltas.push({ type: "tool-arguments", index, text });
}

function textAt(fields: Fields, key: string): string | undefined {
  return valueAt(fields, key, "a string", (value) => (typeof value === "string" ? value : undefined));
}

function requireText(fields: Fields, key: string): string {
  return textAt(fields, key) ?? raise(misfit(fields, key, "a string"));
}

function countAt(fields: Fields, key: string): number | undefined {
  return valueAt(fields, key, "a whole number", (value) => (isCount(value) ? value : undefined));
}

function choiceAt<Choice extends string>(fields: Fields, key: string, allowed: readonly Choice[]): Choice | undefined {
  return valueAt(fields, key, `one of ${allowed.join(", ")}`, (value) => allowed.find((choice) => choice === value));
}

/** Undefined if there is none; `read` gives undefined for one that does not fit. */
function valueAt<Value>(fields: Fields, key: string, expected: string, read: (value: unknown) => Value | undefined) {
  const value = fields[key] ?? undefined;
  return value === undefined ? undefined : (read(value) ?? raise(misfit(fields, key, expected)));
}

function misfit(fields: Fields, key: string, expected: string): GatewayError {
  return garbage(JSON.stringify(fields), `'${key}' must be ${expected}`);
}

/** The line may say anything, so it goes to the log, not onto the wire. */
function garbage(line: string, why: string): GatewayError {
  return new GatewayError("adapter_protocol", "The adapter's program wrote a line that is not part of an answer.", {
    cause: new Error(`${why}; the line begins: ${line.slice(0, 200)}`),
  });
}

function raise(error: Error): never {
  throw error;
}
