/** Events and items of the responses wire, for tests that play an upstream. */

type Fields = Readonly<Record<string, unknown>>;

/** An event, by its name without `response.`. */
export function responseEvent(name: string, fields: Fields = {}): Fields {
  return { type: `response.${name}`, ...fields };
}

export function itemAdded(index: number, item: Fields): Fields {
  return responseEvent("output_item.added", { output_index: index, item: { ...item, status: "in_progress" } });
}

export function itemDone(index: number, item: Fields): Fields {
  return responseEvent("output_item.done", { output_index: index, item });
}

/** A response object with the fields that are read. */
export function response(output: readonly Fields[], more: Fields = {}): Fields {
  return { id: "resp_1", object: "response", status: "completed", error: null, output, ...more };
}

export function completed(output: readonly Fields[], more: Fields = {}): Fields {
  return responseEvent("completed", { response: response(output, more) });
}

export const item = {
  message: (text: string, more: Fields = {}): Fields => ({
    type: "message",
    id: "msg_1",
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text, annotations: [], logprobs: [], ...more }],
  }),
  call: (callId: string, name: string, written: string): Fields => ({
    type: "function_call",
    id: `fc_${callId}`,
    status: "completed",
    call_id: callId,
    name,
    arguments: written,
  }),
  custom: (callId: string, name: string, input: string): Fields => ({
    type: "custom_tool_call",
    id: `ctc_${callId}`,
    status: "completed",
    call_id: callId,
    name,
    input,
  }),
  reasoning: (summary: readonly string[], more: Fields = {}): Fields => ({
    type: "reasoning",
    id: "rs_1",
    summary: summary.map((text) => ({ type: "summary_text", text })),
    ...more,
  }),
};
