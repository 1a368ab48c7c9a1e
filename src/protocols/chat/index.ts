/** The chat completions dialect. */
import type { Protocol } from "../../core/ports.ts";
import { readRequest } from "./request.ts";
import { createVoice } from "./reply.ts";

export interface ChatOptions {
  /** Send reasoning, in `reasoning_content`, to callers who do not say whether they want it. */
  readonly exposeReasoning: boolean;
}

export function createChatProtocol(options: ChatOptions): Protocol {
  return {
    listName: "messages",
    parse(body, _owner, earlier) {
      const { ask, wants, isUnsettled } = readRequest(body, options.exposeReasoning, earlier);
      return { ask, voice: createVoice(wants), isUnsettled };
    },
  };
}
