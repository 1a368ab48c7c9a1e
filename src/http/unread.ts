/** Counts the memory of answers until their callers have read them. */
import type { Holdings } from "./held.ts";
import type { HttpReply } from "./reply.ts";

/** Counts a whole answer until it is read. If there is no room, a lookup is refused, but what a turn has made is sent. */
export function holdWhole(held: Holdings, reply: HttpReply, text: string): void {
  const { request } = reply;
  if (!isCounted(reply, text.length) || request.token === undefined) return;
  const bytes = Buffer.byteLength(text);
  if (request.method === "GET" && reply.raw.statusCode < 400) checkRepeated(held, reply, bytes);
  holdUntilRead(held, reply, bytes);
}

/** Throws if there is no room for a whole answer that was made for an earlier request. */
export function checkRepeated(held: Holdings, reply: HttpReply, bytes: number): void {
  if (held.bytes > maxUncounted && isCounted(reply, bytes)) held.check(reply.request.token.owner, bytes);
}

/** Counts what is left of a stream when all of it is written. */
export function holdRest(held: Holdings, reply: HttpReply): void {
  const { writableLength } = reply.raw;
  if (isCounted(reply, writableLength)) holdUntilRead(held, reply, writableLength);
}

/**
 * The system takes so much at once, unless the answer waits for earlier ones on its connection. Where no more is held,
 * such as the request itself, any answer has room.
 */
export const maxUncounted = 64 * 1024;
const maxUncountedWaiting = 1024;

/** Whether so much of an answer counts. */
export function isCounted({ raw: response }: HttpReply, bytes: number): boolean {
  return bytes > (response.socket === null ? maxUncountedWaiting : maxUncounted);
}

function holdUntilRead(held: Holdings, { raw: response, request }: HttpReply, bytes: number): void {
  if (!response.closed) response.once("close", held.hold(request.token.owner, bytes).release);
}
