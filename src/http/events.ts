/** Tells a turn as server-sent events, from the first heartbeat to its end. */
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Event } from "../core/event.ts";
import type { Heading, Listener } from "../core/gateway.ts";
import type { Answer } from "../core/turn.ts";
import type { Voice } from "../wires/wire.ts";
import type { Call } from "./call.ts";
import { toHeaders } from "./headers.ts";
import { createNumbering, type NumberMessages } from "./numbering.ts";
import type { Streams } from "./stream.ts";

export interface Telling {
  readonly voice: Voice;
  readonly model: string;
  /** Its reader may resume: its messages are numbered, and sent behind that one. */
  readonly numbering?: { readonly after: number | undefined } | undefined;
  /** An earlier request asked for it. */
  readonly isRecalled?: boolean | undefined;
}

export interface EventParts {
  readonly streams: Streams;
  readonly now: () => number;
}

/** A failure before the first byte is thrown, to be a status; a later one is told as the turn's end. */
export async function tellInEvents(
  call: Call,
  { voice, model, numbering, isRecalled }: Telling,
  { streams, now }: EventParts,
  tell: (listener: Listener) => Promise<unknown>,
): Promise<undefined> {
  const { response, record } = call;
  let key = "";
  let heading: Heading | undefined;
  let isReplayed = false;
  let speak: ReturnType<Voice["stream"]> | undefined;
  let number: NumberMessages | undefined;
  const stream = streams.open(response, () => {
    response.writeHead(200, {
      ...eventHeaders,
      "x-request-id": call.id,
      ...toProcessing(call, now),
      ...(isRecalled !== true && toHeaders(heading, isReplayed)),
    });
  });

  function begin(given: Heading): void {
    record.heading = heading = given;
    speak = voice.stream(given);
    if (numbering !== undefined) number = createNumbering(given.key, numbering.after);
  }

  function say(events: readonly Event[]): string {
    if (speak === undefined) return "";
    if (number === undefined) return speak(events);
    const last = events.at(-1);
    if (last?.type !== "turn-end") return number(speak(events), false);
    return number(speak(events.slice(0, -1)), false) + number(speak([last]), true);
  }

  try {
    await tell({
      enter(given) {
        key = given;
      },
      place(given) {
        heading = given;
      },
      begin(given, isRepeated = false) {
        begin(given);
        isReplayed = isRepeated;
        record.firstWordAt = now();
      },
      tell: (events) => stream.write(say(events)),
    });
    stream.end("");
  } catch (thrown) {
    if (!response.headersSent || response.destroyed || speak !== undefined) throw thrown;
    const error = toGatewayError(thrown);
    record.failure = error;
    const bare = { key, createdAt: record.startedAt, model, session: undefined, told: "stateless" } as const;
    begin(heading ?? { ...bare, contextItems: 0, leftOutItems: 0, remarks: [] });
    stream.end(say([{ type: "turn-start" }, { type: "turn-end", answer: toFailed(error, now()) }]));
  }
  return undefined;
}

const eventHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export function toProcessing({ record }: Call, now: () => number): Record<string, string> {
  return { "openai-processing-ms": String(Math.max(0, Math.round(now() - record.startedAt))) };
}

function toFailed(error: GatewayError, endedAt: number): Answer {
  return { status: "failed", finish: "stop", items: [], notes: {}, error, endedAt };
}
