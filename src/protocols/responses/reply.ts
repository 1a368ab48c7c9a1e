/** Says an answer as a response object: whole, or event by event. */
import type { OutputItem } from "../../core/event.ts";
import type { About, Voice } from "../../core/ports.ts";
import { type Echo, createResponseWriter } from "./object.ts";
import { type ItemStatus, toItemId, toWireItem } from "./output.ts";
import type { Seal } from "./seal.ts";
import { createSpeaker } from "./stream.ts";

export function createVoice(echo: Echo, seal: Seal): Voice {
  const sealing = { seal, showsSeals: echo.showsSeals };
  const write = (about: About, item: OutputItem, index: number, status: ItemStatus): string =>
    JSON.stringify(toWireItem(item, toItemId(about.id, item, index), status, sealing));
  return {
    // Whom the caller speaks for is kept in no form that can be read.
    memo: () => JSON.stringify(echo.user === null ? echo : { ...echo, user: seal.seal(echo.user) }),
    whole(about, answer) {
      const { places, brokenOff } = answer;
      const items = answer.items.map((item, at) => {
        const index = places?.[at] ?? at;
        return write(about, item, index, index === brokenOff ? "incomplete" : "completed");
      });
      return createResponseWriter(about, echo).end(answer, items);
    },
    progress(about, status, items) {
      const output = items.map((item, index) => write(about, item, index, "completed"));
      return createResponseWriter(about, echo).begin(status === "queued" ? "queued" : "in_progress", output);
    },
    stream: (about) => createSpeaker(about, echo, sealing),
  };
}

/** The voice of a turn that was kept. What it is made of was written by `memo`. */
export function recallVoice(memo: string, seal: Seal, showsSeals = false): Voice {
  const echo = JSON.parse(memo) as Echo;
  const user = echo.user === null ? null : (seal.open(echo.user) ?? null);
  return createVoice({ ...echo, user, showsSeals: echo.showsSeals || showsSeals }, seal);
}
