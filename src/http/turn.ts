/** One turn over HTTP: a parsed body in, an answer out, whole or as server-sent events. */
import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import { failedTurn } from "../core/frame.ts";
import type { Gateway, Reply } from "../core/gateway.ts";
import type { About, Protocol, Voice } from "../core/ports.ts";
import type { Answer, Ask } from "../core/turn.ts";
import { createSseWriter, cutWhenStalled, watchClient } from "./client.ts";
import { readJsonBody } from "./body.ts";
import { readHint } from "./hint.ts";
import type { Hint, HttpLimits } from "./settings.ts";
import type { Turns } from "./turns.ts";

export interface TurnParts {
  readonly gateway: Gateway;
  readonly turns: Turns;
  readonly hints: readonly Hint[];
  readonly limits: HttpLimits;
  readonly now: () => Date;
  readonly newTurnId: () => string;
  /** Writes a failure into the log. */
  readonly report: (error: GatewayError, request: FastifyRequest) => void;
}

/** Answers a request in the dialect in which it was asked. */
export async function answerTurn(
  parts: TurnParts,
  protocol: Protocol,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const client = watchClient(reply.raw);
  const leave = parts.turns.enter(client);
  try {
    const { ask, voice } = protocol.parse(await readJsonBody(request.raw, parts.limits));
    const turnId = parts.newTurnId();
    const answering = parts.gateway.answer(ask, {
      turnId,
      owner: request.token.owner,
      hint: readHint(parts.hints, request.headers, ask.user),
      signal: client.signal,
    });
    if (ask.stream) return await tellStream(parts, answering, voice, turnId, ask, reply);
    return await tellWhole(parts, await answering, voice, reply);
  } finally {
    leave();
  }
}

async function tellWhole(
  parts: TurnParts,
  { about, events }: Reply,
  voice: Voice,
  reply: FastifyReply,
): Promise<FastifyReply> {
  reply.request.about = about;
  let answer: Answer | undefined;
  for await (const batch of events) {
    const last = batch.at(-1);
    if (last?.type === "turn-end") answer = last.answer;
  }
  if (answer?.error !== undefined) throw answer.error;
  if (answer === undefined) throw new Error("a turn ended without an answer");
  reply.headers(toHeaders(about, reply.elapsedTime)).header("content-type", "application/json; charset=utf-8");
  reply.send(voice.whole(about, answer));
  cutWhenStalled(reply.raw, parts.limits.stalledClientTimeoutMs);
  return reply;
}

async function tellStream(
  parts: TurnParts,
  answering: Promise<Reply>,
  voice: Voice,
  turnId: string,
  ask: Ask,
  reply: FastifyReply,
): Promise<FastifyReply> {
  let about: About | undefined;
  let events: Reply["events"] | undefined;
  let spoke = false;
  const writer = createSseWriter(
    reply.raw,
    () => {
      reply.hijack();
      reply.raw.writeHead(200, { ...toHead(reply), ...(about && toHeaders(about, reply.elapsedTime)), ...sseHeaders });
    },
    parts.limits,
  );
  try {
    const placed = await answering;
    about = reply.request.about = placed.about;
    events = placed.events;
    let step = await events.next();
    const say = voice.stream(about);
    for (; !step.done; step = await events.next()) {
      const text = say(step.value);
      spoke = true;
      const last = step.value.at(-1);
      if (last?.type !== "turn-end") await writer.write(text);
      else {
        if (last.answer.error !== undefined) parts.report(last.answer.error, reply.request);
        writer.end(text);
      }
      if (reply.raw.destroyed) break;
    }
  } catch (thrown) {
    if (!writer.opened) throw thrown;
    const error = toGatewayError(thrown);
    parts.report(error, reply.request);
    // Heartbeats have opened the stream, so the failure is told inside it; but never after something else was said.
    if (spoke) reply.raw.destroy();
    else writer.end(voice.stream(about ?? unplaced(ask, turnId, parts.now()))(failedTurn(error)));
  } finally {
    writer.stop();
    await events?.return();
  }
  return reply;
}

/** What can be said of a turn that failed before it had a place. */
function unplaced(ask: Ask, id: string, createdAt: Date): About {
  return { id, createdAt, model: ask.model, session: undefined, history: "stateless", contextItems: 0 };
}

/** Headers that hooks have set on the reply, for a head that is written past it. */
function toHead(reply: FastifyReply): OutgoingHttpHeaders {
  return reply.getHeaders() as OutgoingHttpHeaders;
}

const sseHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  // no-transform: a proxy that compresses would hold events back.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

function toHeaders(about: About, elapsedMs: number): Record<string, string> {
  const headers: Record<string, string> = {
    "openai-processing-ms": String(Math.round(elapsedMs)),
    "x-portico-history": about.history,
    "x-portico-context": `${about.contextItems} items`,
  };
  if (about.session !== undefined) headers["x-portico-session"] = about.session;
  return headers;
}
