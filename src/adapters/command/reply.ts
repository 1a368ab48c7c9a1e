/** Reads a program's standard output into deltas: as plain text, or as JSON Lines of deltas, whole tool calls, and errors. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { parseObject } from "../../wires/fields.ts";
import { checkBatch, isReportable, toReported, unfit } from "../said.ts";

export type Output = "text" | "jsonl";

/** Of one read, or (undefined) of the end of the output; throws what is no part of an answer, behind what was before it. */
type ReadReply = (bytes: Buffer | undefined) => Iterable<readonly Delta[]>;

export function createReplyReader(output: Output): ReadReply {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const take = output === "text" ? createTextForm() : createLinesForm();

  /** A replacement character would be an invented one; one that is cut in two waits for its other half. */
  function decode(bytes: Buffer | undefined): string {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch (cause) {
      throw new GatewayError("adapter_protocol", "The adapter's program wrote bytes that are not UTF-8.", { cause });
    }
  }

  // The last line may lack its break; to a text the break adds nothing.
  return (bytes) => take(bytes === undefined ? `${decode(bytes)}\n` : decode(bytes));
}

/** As it comes; trailing line breaks belong to the terminal, not to the answer. */
function createTextForm() {
  let breaks = "";
  return function* (text: string): Generator<readonly Delta[]> {
    let end = text.length;
    while (end > 0 && (text[end - 1] === "\n" || text[end - 1] === "\r")) end -= 1;
    if (end > 0) yield [{ type: "text", text: breaks + text.slice(0, end) }];
    breaks = (end > 0 ? "" : breaks) + text.slice(end);
  };
}

function createLinesForm() {
  const calls = { newest: -1 };
  /** Of an incomplete line: a program may write it letter by letter. */
  let pieces: string[] = [];
  return function* (text: string): Generator<readonly Delta[]> {
    const [end = "", ...next] = text.split("\n");
    pieces.push(end);
    for (const begin of next) {
      const line = pieces.join("");
      pieces = [begin];
      if (line.trim() !== "") yield checkBatch(readLine(line, calls));
    }
  };
}

/** What it returns has not been checked. Calls without an index are counted, and arguments without one are the newest's. */
function readLine(line: string, calls: { newest: unknown }): readonly unknown[] {
  const fields = parseObject(line) ?? {};
  const { type, index } = fields;
  switch (type) {
    case "text":
    case "refusal":
    case "reasoning":
    case "finish":
      return [fields];
    case "tool-call": {
      const { call_id: callId, name, kind, arguments: written } = fields;
      calls.newest = index ?? Number(calls.newest) + 1;
      const call = { type, index: calls.newest, callId, name, kind };
      if (written === undefined || written === null) return [call];
      const text = typeof written === "string" ? written : JSON.stringify(written);
      return [call, { type: "tool-arguments", index: calls.newest, text }];
    }
    case "tool-arguments":
      return [{ type, index: index ?? calls.newest, text: fields["text"] }];
    case "usage": {
      const { input_tokens, output_tokens, cached_tokens: cachedTokens, reasoning_tokens: reasoningTokens } = fields;
      const [inputTokens, outputTokens] = [input_tokens ?? 0, output_tokens ?? 0];
      return [{ type, usage: { inputTokens, outputTokens, cachedTokens, reasoningTokens } }];
    }
    case "error": {
      const { code = "adapter_error", message, retry_after_seconds: seconds } = fields;
      if (!isReportable(code) || typeof message !== "string") throw unfit("is no error with a known code", fields);
      throw toReported(code, message, seconds);
    }
    default:
      throw unfit("is no line of a known type", line);
  }
}
