/** WebSocket frames as text: a create request in each of the client's, one event in each of ours. */
import { type GatewayError, toWireError } from "../../core/errors.ts";
import { findString } from "../../core/json-shape.ts";
import type { Remark } from "../../core/ports.ts";
import { isObject, missing, readBody, readBoolean, readChoice, unsupported } from "../../protocols/fields.ts";
import { toRetryAfter } from "../errors.ts";
import { toMessages } from "../numbering.ts";
import { parseBody, type ParseLimits } from "../parse.ts";
import { toRemarkHeaders } from "../send.ts";

export interface CreateFrame {
  /** The body that the same request would have over HTTP. */
  readonly body: Readonly<Record<string, unknown>>;
  /** False: nothing is generated yet; a later request continues it. */
  readonly generates: boolean;
}

/** Reads a client's frame. Its answer is always a stream, whatever `stream` says. */
export function readCreate(value: unknown): CreateFrame {
  const fields = readBody(value);
  if (readChoice(fields, "type", ["response.create"]) === undefined) missing("type");
  if (readBoolean(fields, "background") === true) {
    unsupported("background", "Request background responses with POST /v1/responses.");
  }
  const generates = readBoolean(fields, "generate") ?? true;
  const { type: _type, generate: _generate, [lane]: _lane, ...body } = fields.values;
  // If nothing is generated, the input may be missing.
  const input = generates ? {} : { input: body["input"] ?? [] };
  return { body: { ...body, ...input, stream: true }, generates };
}

/** Lets a client with several readers on one connection tell their events apart. */
const lane = "stream_id";

/** The client's own name for its request, which every event of the answer repeats. */
export function readLane(value: unknown): string | undefined {
  const named = isObject(value) ? value[lane] : undefined;
  return typeof named === "string" ? named : undefined;
}

/** The same of a frame that is refused unread, which must not cost as much as answering it. */
export function findLane(text: string): string | undefined {
  return text.includes(`"${lane}"`) ? findString(text, lane) : undefined;
}

/** More input for a response in progress, as the client wrote it. */
export interface Steer {
  readonly previous_response_id?: unknown;
  readonly input?: unknown;
}

/** Whether a frame is one, as far as can be told unread. */
export function isSteer(text: string): boolean {
  return text.includes(`"${steerMethod}"`) && findString(text, "type") === steerMethod;
}

/** What can be told of it unread: which response it should steer. */
export function findSteer(text: string): Steer {
  return { previous_response_id: findString(text, "previous_response_id") };
}

export function readSteer(text: string, limits: ParseLimits): Steer {
  return readBody(parseBody(text, limits).value).values;
}

/** The type of such a frame, and the method of its line in the log. */
export const steerMethod = "response.steer";

/** Says that the input was refused, and repeats it. `laneName` is that of the response. */
export function toSteerFailed(steer: Steer, { message, type, wireCode }: GatewayError, laneName?: string): string {
  const { previous_response_id, input } = steer;
  const error = { code: wireCode, message, type };
  const told = { type: `${steerMethod}.failed`, error, steer: { previous_response_id, input }, sequence_number: 0 };
  return toLane(JSON.stringify(told), laneName);
}

/** The events of a voice's text, which is whole server-sent messages; each is JSON text. */
export function toFrames(text: string, laneName: string | undefined): readonly string[] {
  const events = toMessages(text).map((message) => message.slice(message.indexOf(mark) + mark.length));
  return events.filter((event) => event !== "[DONE]").map((event) => toLane(event, laneName));
}

const mark = "data: ";

/** A failure outside of any response; the connection stays open. It carries the headers it has over HTTP. */
export function toErrorFrame(error: GatewayError, laneName?: string, remarks: readonly Remark[] = []): string {
  const { message, type, param, code } = toWireError(error);
  const { status } = error;
  const retryAfter = toRetryAfter(error);
  const headers = { ...(retryAfter !== undefined && { "retry-after": retryAfter }), ...toRemarkHeaders(remarks) };
  const told = { code, message, type, param, ...(Object.keys(headers).length > 0 && { headers }) };
  // Readers that validate events recognise an error by its number, and would skip one without.
  const frame = JSON.stringify({ type: "error", status, error: told, sequence_number: 0 });
  return toLane(frame, laneName);
}

function toLane(event: string, laneName: string | undefined): string {
  if (laneName === undefined) return event;
  return `{"${lane}":${JSON.stringify(laneName)},${event.slice(1)}`;
}
