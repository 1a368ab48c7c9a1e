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
    parse(body) {
      const { ask, wants } = readRequest(body, options.exposeReasoning);
      return { ask, voice: createVoice(wants) };
    },
  };
}
