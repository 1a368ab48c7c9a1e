/** Tells a turn as server-sent events, from the first heartbeat to its end. */
import type { Remark } from "../core/adapter.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Event } from "../core/event.ts";
import type { Heading, Listener } from "../core/gateway.ts";
import type { Answer } from "../core/turn.ts";
import type { Voice } from "../wires/wire.ts";
import type { Call } from "./call.ts";
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
  function writeHead(): void {
    const headers = isRecalled === true || heading === undefined ? {} : toHeaders(heading, isReplayed);
    headers["x-request-id"] = record.id;
    response.writeHead(200, Object.assign(toProcessing(call, now, headers), eventHeaders));
  }
  const stream = streams.open(response, writeHead, true);

  function begin(given: Heading, isRepeated = false): void {
    record.heading = heading = given;
    record.key = given.key;
    isReplayed = isRepeated;
    speak = voice.stream(given);
    if (numbering !== undefined) number = createNumbering(given.key, numbering.after);
    // A failure is no word.
    if (record.failure === undefined) record.firstMs = now() - record.startedAt;
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
        record.heading = heading = given;
        record.key = given.key;
      },
      begin,
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

/** Adds to the headers how long it took. */
export function toProcessing(
  { record }: Call,
  now: () => number,
  headers: Record<string, string>,
): Record<string, string> {
  headers["openai-processing-ms"] = String(Math.max(0, Math.round(now() - record.startedAt)));
  return headers;
}

function toFailed(error: GatewayError, endedAt: number): Answer {
  return { status: "failed", finish: "stop", items: [], notes: {}, error, endedAt };
}

/** What happened to a turn. `isRepeated`: it is the answer to an earlier request with the same key. */
export function toHeaders(heading: Heading, isRepeated = false): Record<string, string> {
  const { told, contextItems, leftOutItems, session, remarks } = heading;
  const headers: Record<string, string> = {
    "x-portico-history": told,
    "x-portico-context": `${contextItems} items${leftOutItems > 0 ? `, ${leftOutItems} left out` : ""}`,
  };
  if (session !== undefined) headers["x-portico-session"] = session;
  if (isRepeated) headers["x-portico-replayed"] = "true";
  if (remarks.length > 0) Object.assign(headers, toRemarkHeaders(remarks));
  return headers;
}

/** Which adapters were tried first, and what of the request was left out or changed. */
export function toRemarkHeaders(remarks: readonly Remark[]): Record<string, string> {
  const tried = remarks.flatMap((remark) => (remark.type === "tried" ? [`${remark.adapter} (${remark.code})`] : []));
  const warnings = remarks.flatMap((remark) => {
    if (remark.type === "changed") return [`${remark.what} changed to ${remark.to}`];
    return remark.type === "left-out" ? [`${remark.what} left out`] : [];
  });
  return {
    ...(tried.length > 0 && { "x-portico-tried": toText(tried) }),
    ...(warnings.length > 0 && { "x-portico-warning": toText(warnings) }),
  };
}

const maxCharacters = 1_000;

/** Names in a remark may be the caller's own words, which a header cannot always carry. */
function toText(words: readonly string[]): string {
  return words
    .join(", ")
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .slice(0, maxCharacters);
}
