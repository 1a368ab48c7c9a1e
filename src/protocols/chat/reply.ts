/** Says an answer as a chat completion: whole, or as a stream of chunks. */
import { toWireError } from "../../core/errors.ts";
import type { Event } from "../../core/event.ts";
import type { About, Voice } from "../../core/ports.ts";
import type { Answer } from "../../core/turn.ts";
import { toSeconds } from "../time.ts";
import { type ChoiceSpeaker, createChoiceSpeaker } from "./chunks.ts";
import { addedTo, toCompletion, toCompletionId, toServed, toUsage } from "./completion.ts";
import type { Wants } from "./request.ts";

export function createVoice(wants: Wants): Voice {
  return {
    whole: (about, answer) => JSON.stringify(toCompletion(about, answer, wants)),
    stream: (about) => createSpeaker(about, wants),
  };
}

/** Turns events into chunks, each for one choice. */
function createSpeaker(about: About, wants: Wants): (events: readonly Event[]) => string {
  const head =
    `data: {"id":${JSON.stringify(toCompletionId(about))},"object":"chat.completion.chunk",` +
    `"created":${toSeconds(about.createdAt)},"model":${JSON.stringify(about.model)},`;
  const tail = wants.usage ? `}],"usage":null}\n\n` : "}]}\n\n";
  const first = createChoiceSpeaker(0, { head, tail }, wants);
  const others: ChoiceSpeaker[] = [];

  function speakerOf(choice = 0): ChoiceSpeaker {
    if (choice === 0) return first;
    return (others[choice] ??= createChoiceSpeaker(choice, { head, tail }, wants));
  }

  function end(answer: Answer): string {
    if (answer.error !== undefined) return `data: ${JSON.stringify({ error: toWireError(answer.error) })}\n\n${done}`;
    // What served the answer is known at its end; readers that collect chunks keep the last value.
    const served = toServed(answer.notes);
    const last = `${head}${JSON.stringify(served).slice(1, -1)},"choices":[`;
    const added = addedTo("completion", answer.notes.extra);
    const lastOfFirst = `${head}${JSON.stringify({ ...added, ...served }).slice(1, -1)},"choices":[`;
    let said = first.end(lastOfFirst, answer.finish, answer.extra);
    for (const [index, { finish, extra }] of (answer.others ?? []).entries())
      said += speakerOf(index + 1).end(last, finish, extra);
    if (!wants.usage || answer.usage === undefined) return said + done;
    return `${said}${last}],"usage":${JSON.stringify(toUsage(answer.usage, answer.notes))}}\n\n${done}`;
  }

  function say(event: Event): string {
    switch (event.type) {
      case "turn-end":
        return end(event.answer);
      case "turn-queued":
      case "turn-start":
        return "";
      default:
        return speakerOf(event.choice).say(event);
    }
  }

  return (events) => {
    let text = "";
    for (const event of events) text += say(event);
    return text;
  };
}

const done = "data: [DONE]\n\n";
