/** Reads one line of a program's JSON Lines: a delta, a whole tool call, or the program's own word that it failed. */
import type { Delta } from "../../core/delta.ts";
import { GatewayError } from "../../core/errors.ts";
import { finishes } from "../../core/turn.ts";
import { tellableCodes } from "../failures.ts";
import { isCount, isObject, type JsonObject as Fields, parseJson } from "../json.ts";

/** Calls without a number of their own are counted as they come, and arguments without one belong to the newest call. */
export function createLineReader(): (line: string, deltas: Delta[]) => void {
  let newest = -1;

  function readCall(fields: Fields, deltas: Delta[]): void {
    const index = (newest = countAt(fields, "index") ?? newest + 1);
    const kind = choiceAt(fields, "kind", ["function", "custom"]);
    deltas.push({
      type: "tool-call",
      index,
      callId: textAt(fields, "call_id"),
      name: requireText(fields, "name"),
      kind,
    });
    const { arguments: written } = fields;
    if (written === undefined || written === null) return;
    deltas.push({
      type: "tool-arguments",
      index,
      text: typeof written === "string" ? written : JSON.stringify(written),
    });
  }

  return (line, deltas) => {
    const fields = readSpoken(line);
    switch (fields?.["type"]) {
      case "text":
      case "refusal":
        return void deltas.push({ type: fields["type"], text: requireText(fields, "text") });
      case "reasoning":
        return void deltas.push({
          type: "reasoning",
          text: requireText(fields, "text"),
          summary: countAt(fields, "summary"),
        });
      case "tool-call":
        return readCall(fields, deltas);
      case "tool-arguments":
        return void deltas.push({
          type: "tool-arguments",
          index: countAt(fields, "index") ?? Math.max(newest, 0),
          text: requireText(fields, "text"),
        });
      case "usage":
        return void deltas.push({
          type: "usage",
          usage: {
            inputTokens: countAt(fields, "input_tokens") ?? 0,
            cachedTokens: countAt(fields, "cached_tokens") ?? 0,
            outputTokens: countAt(fields, "output_tokens") ?? 0,
            reasoningTokens: countAt(fields, "reasoning_tokens") ?? 0,
          },
        });
      case "finish":
        return void deltas.push({ type: "finish", reason: choiceAt(fields, "reason", finishes) ?? "stop" });
      case "error":
        throw new GatewayError(
          choiceAt(fields, "code", tellableCodes) ?? "adapter_error",
          requireText(fields, "message"),
          {
            retryAfterSeconds: countAt(fields, "retry_after_seconds"),
          },
        );
      default:
        throw garbage(line, "it is no JSON object of a known type");
    }
  };
}

/** Whether a program that begins with this line means to speak in JSON Lines. */
export function isSpoken(line: string): boolean {
  const type = readSpoken(line)?.["type"];
  return typeof type === "string" && types.has(type);
}

const types: ReadonlySet<string> = new Set([
  "text",
  "refusal",
  "reasoning",
  "tool-call",
  "tool-arguments",
  "usage",
  "finish",
  "error",
]);

function readSpoken(line: string): Fields | undefined {
  const value = parseJson(line);
  return isObject(value) ? value : undefined;
}

function textAt(fields: Fields, key: string): string | undefined {
  const value = fields[key];
  if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
  throw misfit(fields, key, "a string");
}

function requireText(fields: Fields, key: string): string {
  return textAt(fields, key) ?? raise(misfit(fields, key, "a string"));
}

function countAt(fields: Fields, key: string): number | undefined {
  const value = fields[key];
  if (value === undefined || value === null) return undefined;
  if (isCount(value)) return value;
  throw misfit(fields, key, "a whole number");
}

function choiceAt<Choice extends string>(fields: Fields, key: string, allowed: readonly Choice[]): Choice | undefined {
  const value = textAt(fields, key);
  if (value === undefined) return undefined;
  return allowed.find((choice) => choice === value) ?? raise(misfit(fields, key, `one of ${allowed.join(", ")}`));
}

function misfit(fields: Fields, key: string, expected: string): GatewayError {
  return garbage(JSON.stringify(fields), `'${key}' must be ${expected}`);
}

/** What the line says may be anything, and so belongs into the log, not onto the wire. */
function garbage(line: string, why: string): GatewayError {
  return new GatewayError("adapter_protocol", "The adapter's program wrote a line that is no part of an answer.", {
    cause: new Error(`${why}; the line begins: ${line.slice(0, 200)}`),
  });
}

function raise(error: Error): never {
  throw error;
}
