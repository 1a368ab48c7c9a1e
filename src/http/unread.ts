/** Counts answers that are written but not read yet: they stay in memory until their caller has taken them. */
import type { FastifyReply } from "fastify";
import type { Holdings } from "./held.ts";

/** Counts a whole answer. If there is no room, a lookup is refused, but what a turn has made is sent. */
export function holdWhole(held: Holdings, reply: FastifyReply, payload: unknown): void {
  const { request } = reply;
  if (typeof payload !== "string" || payload.length <= maxUncounted || request.token === undefined) return;
  const bytes = Buffer.byteLength(payload);
  if (request.method === "GET") held.check(request.token.owner, bytes);
  holdUntilRead(held, reply, bytes);
}

/** Counts what is left of a stream when all of it is written. */
export function holdRest(held: Holdings, reply: FastifyReply): void {
  const { writableLength } = reply.raw;
  if (writableLength > maxUncounted) holdUntilRead(held, reply, writableLength);
}

/** Not counted up to here: the system takes it at once. */
const maxUncounted = 64 * 1024;

function holdUntilRead(held: Holdings, { raw: response, request }: FastifyReply, bytes: number): void {
  if (!response.closed) response.once("close", held.hold(request.token.owner, bytes).release);
}
