/** Says an answer as a response object: whole, or event by event. */
import type { Event, OutputItem } from "../../core/event.ts";
import type { Pieces } from "../../core/frame/pieces.ts";
import type { About, Voice } from "../../core/ports.ts";
import { createResponseWriter } from "./object.ts";
import { type ItemStatus, toItemId, toWireItem } from "./output.ts";
import type { Echo } from "./request.ts";
import type { Seal } from "./seal.ts";
import { createSpeaker } from "./stream.ts";
import { toSections, wantsSummary } from "./summary.ts";

export interface ResponsesVoice extends Voice {
  /** Its caller asked for a summary of the reasoning. */
  readonly wantsSummary: boolean;
  /** `saysError`: if the turn fails, there is an `error` before `response.failed`; by default there is. */
  stream(about: About, saysError?: boolean): (events: readonly Event[]) => string;
}

export function createVoice(echo: Echo, seal: Seal): ResponsesVoice {
  const sealing = { seal, showsSeals: echo.showsSeals };
  const summarises = wantsSummary(echo);

  function write(about: About, item: OutputItem, index: number, status: ItemStatus, segments?: Pieces[number]): string {
    const sections = summarises ? toSections(item, segments) : undefined;
    return JSON.stringify(toWireItem(item, toItemId(about.id, item, index), status, sealing, sections));
  }

  return {
    wantsSummary: summarises,
    // The caller's `user` is never stored in readable form.
    memo: () => JSON.stringify(echo.user === null ? echo : { ...echo, user: seal.seal(echo.user) }),
    whole(about, answer) {
      const { places, brokenOff, pieces } = answer;
      const items = answer.items.map((item, at) => {
        const index = places?.[at] ?? at;
        return write(about, item, index, index === brokenOff ? "incomplete" : "completed", pieces?.[index]);
      });
      return createResponseWriter(about, echo)(answer, items);
    },
    progress(about, status, items) {
      const output = items.map((item, index) => write(about, item, index, "completed"));
      return createResponseWriter(about, echo)(status === "queued" ? "queued" : "in_progress", output);
    },
    stream: (about, saysError) => createSpeaker(about, echo, sealing, saysError),
  };
}

/** The voice of a stored turn, restored from its `memo`. */
export function recallVoice(memo: string, seal: Seal, showsSeals = false): ResponsesVoice {
  const echo = JSON.parse(memo) as Echo;
  const user = echo.user === null ? null : (seal.open(echo.user) ?? null);
  return createVoice({ ...echo, user, showsSeals: echo.showsSeals || showsSeals }, seal);
}
