/** The responses dialect: a create body in, a response object or its event stream out. */
import type { Earlier, Protocol } from "../../core/ports.ts";
import { createVoice, recallVoice, type ResponsesVoice } from "./reply.ts";
import { readRequest } from "./request.ts";
import { mayOpenLater, type SealOf } from "./seal.ts";

/** All routes of the dialect seal what callers carry in the same way. */
export interface ResponsesProtocol extends Protocol {
  readonly sealOf: SealOf;
  parse(body: unknown, owner: string, earlier?: Earlier): ReturnType<Protocol["parse"]> & { voice: ResponsesVoice };
  /**
   * The voice of an owner's stored turn, from its memo. `showsSeals`: with sealed reasoning, even if the request did
   * not ask for it.
   */
  recall(memo: string, owner: string, showsSeals?: boolean): ResponsesVoice;
}

/** Speaks `POST /v1/responses`. */
export function createResponsesProtocol({ seal: sealOf }: { readonly seal: SealOf }): ResponsesProtocol {
  return {
    sealOf,
    listName: "input",
    parse(body, owner, earlier) {
      const seal = sealOf(owner);
      const { ask, echo } = readRequest(body, seal, earlier);
      const news = ask.items.slice(earlier?.items.length);
      const isUnsettled = ask.compacts === true || news.some((item) => mayOpenLater(item, seal));
      return { ask, voice: createVoice(echo, seal), isUnsettled };
    },
    recall: (memo, owner, showsSeals) => recallVoice(memo, sealOf(owner), showsSeals),
  };
}
