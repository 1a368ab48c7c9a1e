/** What goes through a WebSocket as text: a create request in each frame of the client, one event in each of ours. */
import { type GatewayError, toWireError } from "../../core/errors.ts";
import type { Remark } from "../../core/ports.ts";
import { isObject, missing, readBody, readBoolean, readChoice, unsupported } from "../../protocols/fields.ts";
import { parseBody } from "../parse.ts";
import type { HttpLimits } from "../settings.ts";
import { toRemarkHeaders } from "../tell.ts";

export interface CreateFrame {
  /** The body that the same request would have over HTTP. */
  readonly body: Readonly<Record<string, unknown>>;
  /** False: nothing is generated yet, a later request goes on from here. */
  readonly generates: boolean;
}

/** Reads a frame of the client. Its answer always comes as a stream, whatever it says of that. */
export function readCreate(value: unknown): CreateFrame {
  const fields = readBody(value);
  if (readChoice(fields, "type", ["response.create"]) === undefined) missing("type");
  if (readBoolean(fields, "background") === true) {
    unsupported("background", "A response in the background is asked for with POST /v1/responses.");
  }
  const generates = readBoolean(fields, "generate") ?? true;
  const { type: _type, generate: _generate, [lane]: _lane, ...body } = fields.values;
  // Where nothing is generated nothing needs to be said yet.
  const input = generates ? {} : { input: body["input"] ?? [] };
  return { body: { ...body, ...input, stream: true }, generates };
}

/** By it a client that has several readers on one connection tells their events apart. */
const lane = "stream_id";

/** The client's own name for its request, which every event of the answer repeats. */
export function readLane(value: unknown): string | undefined {
  const named = isObject(value) ? value[lane] : undefined;
  return typeof named === "string" ? named : undefined;
}

/** The same of a frame that is refused unread. What cannot be read has none, and what cannot have one is not read. */
export function findLane(text: string, limits: Pick<HttpLimits, "maxJsonDepth">): string | undefined {
  return readLane(peek(text, lane, limits));
}

/** The value of a frame that has this word in it, if it can be read. */
function peek(text: string, word: string, limits: Pick<HttpLimits, "maxJsonDepth">): unknown {
  if (!text.includes(`"${word}"`)) return undefined;
  try {
    return parseBody(text, limits).value;
  } catch {
    return undefined;
  }
}

/** More input for a response that is being made, as its client has written it. */
export interface Steer {
  readonly previous_response_id?: unknown;
  readonly input?: unknown;
}

/** Nothing where a frame asks for something else. */
export function findSteer(text: string, limits: Pick<HttpLimits, "maxJsonDepth">): Steer | undefined {
  const value = peek(text, steerMethod, limits);
  return isObject(value) && value["type"] === steerMethod ? value : undefined;
}

/** What such a frame has as its type, and its line in the log as its method. */
export const steerMethod = "response.steer";

/** Says that the input was not taken, and gives it back. `laneName` is that of the response. */
export function toSteerFailed(steer: Steer, { message, type, wireCode }: GatewayError, laneName?: string): string {
  const { previous_response_id, input } = steer;
  const error = { code: wireCode, message, type };
  const told = { type: `${steerMethod}.failed`, error, steer: { previous_response_id, input }, sequence_number: 0 };
  return toLane(JSON.stringify(told), laneName);
}

/**
 * The events of a speaker's text, which is whole messages of server-sent events; each is JSON text as it stands there.
 * A connection outlives its responses, and clients take an `error` for the end of one: were `response.failed` to follow it,
 * they would read that as the answer to their next request, and so on. So a response that failed is told by its end alone.
 */
export function toFrames(text: string, laneName: string | undefined): readonly string[] {
  const frames: string[] = [];
  let from = 0;
  /** The number of the event that is not told, for the one behind it: there are no gaps. */
  let left: string | undefined;
  // JSON holds no bare line end, so an empty line is the end of a message.
  for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n", from)) {
    const event = text.slice(text.indexOf(mark, from) + mark.length, end);
    from = end + 2;
    if (event === "[DONE]") continue;
    if (event.startsWith(errorEvent)) {
      left = numberAtEnd.exec(event)?.[0];
      continue;
    }
    const told = left === undefined ? event : event.replace(numberAtEnd, left);
    frames.push(toLane(told, laneName));
  }
  return frames;
}

const mark = "data: ";

const errorEvent = '{"type":"error",';

const numberAtEnd = /\d+\}$/;

/** A failure outside of any response; the connection goes on. It carries the headers that tell of it over HTTP. */
export function toErrorFrame(error: GatewayError, laneName?: string, remarks: readonly Remark[] = []): string {
  const { message, type, param, code } = toWireError(error);
  const { status, retryAfterSeconds: seconds } = error;
  const headers = { ...(seconds !== undefined && { "retry-after": String(seconds) }), ...toRemarkHeaders(remarks) };
  const told = { code, message, type, param, ...(Object.keys(headers).length > 0 && { headers }) };
  // Readers that check every event know an error by its number, and would pass over one without.
  const frame = JSON.stringify({ type: "error", status, error: told, sequence_number: 0 });
  return toLane(frame, laneName);
}

function toLane(event: string, laneName: string | undefined): string {
  if (laneName === undefined) return event;
  return `{"${lane}":${JSON.stringify(laneName)},${event.slice(1)}`;
}
