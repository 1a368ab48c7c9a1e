/** The log of the door: one line for every request that ended, however it ended, and one for every failure of ours. */
import type { FastifyReply, FastifyRequest } from "fastify";
import type { GatewayError } from "../core/errors.ts";
import type { About } from "../core/ports.ts";

/** Where the lines go. */
export interface DoorLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

declare module "fastify" {
  interface FastifyRequest {
    /** What is known of the turn that it asked for, once it has its place. */
    about: About | undefined;
    /** Why it failed, told as a status or inside its stream. */
    failure: GatewayError | undefined;
  }
}

export interface Journal {
  /** Writes the request's line when its answer is over. */
  follow(request: FastifyRequest, reply: FastifyReply): void;
  /** Remembers a failure for that line; one that is not the caller's gets a line of its own, with its cause. */
  report(error: GatewayError, request: FastifyRequest): void;
}

/** Status of a request whose caller left before the end; no caller ever sees it. */
const callerLeft = 499;

export function createJournal(log: DoorLog): Journal {
  return {
    follow(request, reply) {
      reply.raw.once("close", () => {
        const { about, failure } = request;
        const fields = {
          requestId: request.id,
          method: request.method,
          path: request.routeOptions.url ?? request.url.split("?", 1)[0],
          status: reply.raw.writableFinished ? reply.raw.statusCode : callerLeft,
          ms: Math.round(reply.elapsedTime),
          owner: request.token?.owner,
          model: about?.model,
          history: about?.history,
          code: failure?.code,
        };
        log.info(fields, "request");
      });
    },
    report(error, request) {
      request.failure = error;
      if (error.status < 500) return;
      log.error({ requestId: request.id, code: error.code, err: error.cause ?? error }, error.message);
    },
  };
}
