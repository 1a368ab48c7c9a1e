/** Reads one line of a program's JSON Lines: a delta, a whole tool call, or an error that the program reports. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { parseObject } from "../../wires/fields.ts";
import { reportableCodes, toWholeSeconds } from "../reported.ts";
import { checkBatch, unfit } from "../said.ts";

/** A line that is no such object is not part of an answer. */
export function createLineReader(): (line: string, deltas: Delta[]) => void {
  const calls = { newest: -1 };
  return (line, deltas) => {
    const fields = parseObject(line) ?? {};
    const read = readers.get(fields["type"]);
    if (read === undefined) throw unfit("is no line of a known type", line);
    for (const delta of checkBatch(read(fields, calls))) deltas.push(delta);
  };
}

/** Whether a program whose first line this is writes JSON Lines. */
export function isSaid(line: string): boolean {
  return readers.has(parseObject(line)?.["type"]);
}

type Fields = Readonly<Record<string, unknown>>;
/** What it returns has not been checked. Calls without an index are counted as they come. */
type Read = (fields: Fields, calls: { newest: unknown }) => readonly unknown[];

const readDelta: Read = (fields) => [fields];

const readers: ReadonlyMap<unknown, Read> = new Map<unknown, Read>([
  ["text", readDelta],
  ["refusal", readDelta],
  ["reasoning", readDelta],
  ["finish", readDelta],
  ["tool-call", readCall],
  // Those without an index belong to the newest call.
  ["tool-arguments", ({ type, index, text }, { newest }) => [{ type, index: index ?? newest, text }]],
  ["usage", readUsage],
  ["error", readError],
]);

function readCall(fields: Fields, calls: { newest: unknown }): readonly unknown[] {
  const { type, index = Number(calls.newest) + 1, call_id: callId, name, kind, arguments: written } = fields;
  calls.newest = index;
  const call = { type, index, callId, name, kind };
  if (written === undefined || written === null) return [call];
  return [
    call,
    { type: "tool-arguments", index, text: typeof written === "string" ? written : JSON.stringify(written) },
  ];
}

function readUsage({ type, input_tokens, output_tokens, cached_tokens, reasoning_tokens }: Fields): readonly unknown[] {
  const [inputTokens, outputTokens] = [input_tokens ?? 0, output_tokens ?? 0];
  return [
    { type, usage: { inputTokens, outputTokens, cachedTokens: cached_tokens, reasoningTokens: reasoning_tokens } },
  ];
}

function readError(fields: Fields): never {
  const { code: found, message, retry_after_seconds: seconds } = fields;
  const code = reportableCodes.find((known) => known === (found ?? "adapter_error"));
  if (code === undefined || typeof message !== "string") throw unfit("is no error with a known code", fields);
  throw new GatewayError(code, message, { retryAfterSeconds: toWholeSeconds(seconds) });
}
