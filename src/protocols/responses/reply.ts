/** Says an answer as a response object: whole, or event by event. */
import type { Voice } from "../../core/ports.ts";
import { type Echo, createResponseWriter } from "./object.ts";
import { toItemId, toWireItem } from "./output.ts";
import { createSpeaker } from "./stream.ts";

export function createVoice(echo: Echo, now: () => Date): Voice {
  return {
    whole(about, answer) {
      // Only the item that was being said when the model was cut off is not whole: the last one.
      const cut = answer.status === "incomplete" ? answer.items.length - 1 : -1;
      const items = answer.items.map((item, index) => {
        const status = index === cut ? "incomplete" : "completed";
        return JSON.stringify(toWireItem(item, toItemId(about.id, item, index), status, echo.showsSeals));
      });
      return createResponseWriter(about, echo, now).end(answer, items);
    },
    stream: (about) => createSpeaker(about, echo, now),
  };
}
