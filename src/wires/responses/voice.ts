/** Tells an answer as a response object: whole, or event by event; now, or again from what was kept. */
import type { Event } from "../../core/event.ts";
import type { Heading } from "../../core/gateway.ts";
import type { Item } from "../../core/item.ts";
import type { Seal, Voice } from "../wire.ts";
import { createResponseWriter, type Echo, type Progress, readEcho } from "./object.ts";
import { createSpeaker } from "./stream.ts";
import { showItem } from "./written.ts";

export interface ResponsesVoice extends Voice {
  /** `tellsError`: a failure is an `error` before it is the response's end, as everywhere but over a WebSocket. */
  stream(heading: Heading, tellsError?: boolean): (events: readonly Event[]) => string;
  /** A background turn that is not over. */
  progress(heading: Heading, status: Progress): string;
}

export function createVoice(echo: Echo, seal: Seal): ResponsesVoice {
  const { summarises, showsSeals } = echo.asked;
  const sealing = { seal, showsSeals };
  return {
    whole(heading, answer) {
      const output = answer.items.map((item, at) => {
        const isCut = answer.isBrokenOff === true && at === answer.items.length - 1;
        const status = isCut ? "incomplete" : "completed";
        return showItem(item, status, sealing, summarises ? sectionsOf(item) : undefined);
      });
      return createResponseWriter(heading, echo)(answer, output);
    },
    stream: (heading, tellsError = true) => createSpeaker(heading, echo, sealing, tellsError),
    progress: (heading, status) => createResponseWriter(heading, echo)(status, []),
  };
}

/** Raw reasoning is its only section. */
function sectionsOf(item: Item): readonly string[] | undefined {
  return item.type === "reasoning" && item.text !== "" && item.summary.length === 0 ? [item.text] : undefined;
}

/** The voice of a kept turn. `showsSeals`: with sealed reasoning though its request did not ask for it. */
export function recall(echo: string, { seal }: { readonly seal: Seal }, showsSeals = false): ResponsesVoice {
  const { fixed, asked } = readEcho(echo, seal);
  return createVoice({ fixed, asked: { ...asked, showsSeals: asked.showsSeals || showsSeals } }, seal);
}
