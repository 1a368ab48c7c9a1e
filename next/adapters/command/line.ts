/** Reads one line of a program's JSON Lines: a delta, a whole tool call, or an error that the program reports. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { parseObject } from "../../wires/fields.ts";
import { reportableCodes, toWholeSeconds } from "../reported.ts";
import { checkBatch, unfit } from "../said.ts";

/** A line that is no such object is not part of an answer. */
export function createLineReader(): (line: string, deltas: Delta[]) => void {
  const calls: Calls = { newest: -1 };
  return (line, deltas) => {
    const fields = parseObject(line) ?? {};
    const read = findReader(fields);
    if (read === undefined) throw unfit("is no line of a known type", line);
    for (const delta of checkBatch(read(fields, calls))) deltas.push(delta);
  };
}

/** Whether a program whose first line this is writes JSON Lines. */
export function isSaid(line: string): boolean {
  return findReader(parseObject(line) ?? {}) !== undefined;
}

type Fields = Readonly<Record<string, unknown>>;
type Read = (fields: Fields, calls: Calls) => readonly unknown[];

/** Calls without an index are counted as they come; arguments without one belong to the newest call. */
interface Calls {
  newest: unknown;
}

function findReader({ type }: Fields): Read | undefined {
  return readers.get(type);
}

const asDelta: Read = (fields) => [fields];

const readers: ReadonlyMap<unknown, Read> = new Map<unknown, Read>([
  ["text", asDelta],
  ["refusal", asDelta],
  ["reasoning", asDelta],
  ["finish", asDelta],
  ["tool-call", readCall],
  ["tool-arguments", ({ type, index, text }, { newest }) => [{ type, index: index ?? newest, text }]],
  ["usage", readUsage],
  ["error", readError],
]);

function readCall({ type, index, call_id, name, kind, arguments: written }: Fields, calls: Calls): readonly unknown[] {
  calls.newest = index ?? Number(calls.newest) + 1;
  const call = { type, index: calls.newest, callId: call_id, name, kind };
  const text = typeof written === "string" ? written : JSON.stringify(written ?? undefined);
  return text === undefined ? [call] : [call, { type: "tool-arguments", index: calls.newest, text }];
}

function readUsage(fields: Fields): readonly unknown[] {
  const { type, input_tokens, cached_tokens, output_tokens, reasoning_tokens } = fields;
  const [inputTokens, outputTokens] = [input_tokens ?? 0, output_tokens ?? 0];
  return [
    { type, usage: { inputTokens, cachedTokens: cached_tokens, outputTokens, reasoningTokens: reasoning_tokens } },
  ];
}

function readError(fields: Fields): never {
  const { code: found, message, retry_after_seconds } = fields;
  const code = reportableCodes.find((known) => known === (found ?? "adapter_error"));
  if (code === undefined || typeof message !== "string")
    throw unfit("is no error with a message and a known code", fields);
  throw new GatewayError(code, message, { retryAfterSeconds: toWholeSeconds(retry_after_seconds) });
}
