/** Reads server-sent events as they arrive. */

/** @import { StreamEvent } from "./dialects.js" */

/**
 * The JSON of each event; comments and the closing `[DONE]` are left out.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 * @returns {AsyncGenerator<StreamEvent, void, void>}
 */
export async function* readEvents(body) {
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value = "" } = await reader.read();
      if (done) return;
      const messages = (rest + value).split("\n\n");
      rest = messages.pop() ?? "";
      for (const message of messages) {
        const text = message
          .split("\n")
          .flatMap((line) => (line.startsWith("data:") ? [line.slice("data:".length).trimStart()] : []))
          .join("\n");
        if (text !== "" && text !== "[DONE]") yield JSON.parse(text);
      }
    }
  } finally {
    // A reader that stops closes the connection, which cancels the turn.
    void reader.cancel().catch(() => {});
  }
}
