/** The responses dialect: a create body in, a response object or its event stream out. */
import type { Protocol } from "../../core/ports.ts";
import { createVoice } from "./reply.ts";
import { readRequest } from "./request.ts";

export interface ResponsesOptions {
  /** Tells when an answer was completed. */
  readonly now: () => Date;
}

/** Speaks `POST /v1/responses`. */
export function createResponsesProtocol(options: ResponsesOptions): Protocol {
  return {
    parse(body) {
      const { ask, echo } = readRequest(body);
      return { ask, voice: createVoice(echo, options.now) };
    },
  };
}
