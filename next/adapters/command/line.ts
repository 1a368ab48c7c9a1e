/** Reads one line of a program's JSON Lines: a delta, a whole tool call, or an error that the program reports. */
import { GatewayError } from "../../core/errors.ts";
import type { Delta } from "../../core/event.ts";
import { isObject, parseObject } from "../../wires/fields.ts";
import { checkBatch, unfit } from "../module/check.ts";
import { reportableCodes, toWholeSeconds } from "../module/failure.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Calls without an index are counted as they come; arguments without one belong to the newest call. */
export function createLineReader(): (line: string, deltas: Delta[]) => void {
  let newest = -1;

  function toDeltas(fields: Fields): readonly unknown[] {
    switch (fields["type"]) {
      case "text":
      case "refusal":
      case "reasoning":
      case "finish":
        return [fields];
      case "tool-call": {
        const { name, kind, call_id: callId, arguments: written = null } = fields;
        const index = fields["index"] ?? newest + 1;
        newest = Number(index);
        const call = { type: "tool-call", index, callId, name, kind };
        if (written === null) return [call];
        return [
          call,
          { type: "tool-arguments", index, text: typeof written === "string" ? written : JSON.stringify(written) },
        ];
      }
      case "tool-arguments":
        return [{ type: "tool-arguments", index: fields["index"] ?? Math.max(newest, 0), text: fields["text"] }];
      case "usage": {
        const { input_tokens: inputTokens = 0, output_tokens: outputTokens = 0 } = fields;
        const { cached_tokens: cachedTokens, reasoning_tokens: reasoningTokens } = fields;
        return [{ type: "usage", usage: { inputTokens, cachedTokens, outputTokens, reasoningTokens } }];
      }
      case "error":
        throw toReported(fields);
      default:
        return [undefined];
    }
  }

  return (line, deltas) => {
    const fields = parseObject(line);
    for (const delta of checkBatch(fields === undefined ? [line] : toDeltas(fields))) deltas.push(delta);
  };
}

/** Whether a program whose first line this is writes JSON Lines. */
export function isSaid(line: string): boolean {
  const fields = parseObject(line);
  return isObject(fields) && types.has(fields["type"]);
}

const types: ReadonlySet<unknown> = new Set([
  ...["text", "refusal", "reasoning", "tool-call", "tool-arguments", "usage", "finish", "error"],
]);

function toReported(fields: Fields): GatewayError {
  const { code: found = "adapter_error", message, retry_after_seconds: seconds } = fields;
  const code = reportableCodes.find((known) => known === found);
  if (code === undefined || typeof message !== "string")
    throw unfit("is no error with a message and a known code", fields);
  return new GatewayError(code, message, { retryAfterSeconds: toWholeSeconds(seconds) });
}
