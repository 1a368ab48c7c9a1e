/** The endpoints that take turns: a body goes in, an answer comes out, whole or as a stream of events. */
import type { ServerResponse } from "node:http";
import { callerLeft, type GatewayError, toGatewayError } from "../core/errors.ts";
import type { Caller, Gateway, Heading, Listener } from "../core/gateway.ts";
import type { Answer } from "../core/turn.ts";
import type { Front, Request, Seal } from "../wires/wire.ts";
import { checkModel } from "./access.ts";
import { readBody } from "./body.ts";
import type { Call, Handler, Result } from "./call.ts";
import { toHeaders } from "./headers.ts";
import { readHint } from "./hint.ts";
import { toPath } from "./router.ts";
import type { Streams } from "./stream.ts";

export interface TurnParts {
  readonly gateway: Gateway;
  readonly streams: Streams;
  readonly sealOf: (owner: string) => Seal;
  readonly now: () => number;
}

export function createTurnHandler(front: Front, parts: TurnParts): Handler {
  return async (call) => {
    const { token, settings } = call;
    const { json } = await readBody(call);
    const circumstances = { seal: parts.sealOf(token.owner), exposesReasoning: settings.exposesReasoning };
    const request = front.readRequest(withDeployment(json, call), circumstances);
    checkModel(token, request.ask.model, "model");
    const caller = toCaller(call, request);
    return request.ask.stream
      ? answerInEvents(call, request, caller, parts)
      : answerWhole(call, request, caller, parts);
  };
}

/** A deployment in the path is the model, whatever the body says: Azure-style clients put anything there. */
function withDeployment(json: unknown, { request }: Call): unknown {
  const { deployment } = toPath(request.url ?? "");
  if (deployment === undefined || typeof json !== "object" || json === null) return json;
  return { ...json, model: decodeURIComponent(deployment) };
}

function toCaller({ request, response, settings, token }: Call, { ask }: Request): Caller {
  const hint = readHint(settings.hints, request.headers, ask.user);
  const { traceparent, tracestate } = request.headers;
  const shows = token.showsHistory ?? settings.showsHistory;
  return {
    owner: token.owner,
    hint: hint?.value,
    shows: shows || hint?.shows === true,
    signal: whenLeft(response),
    ...(typeof traceparent === "string" && { trace: { parent: traceparent, state: tracestate?.toString() } }),
  };
}

/** The request's own `close` does not tell that the caller left once its body is read: the response's does. */
function whenLeft(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) left.abort(callerLeft());
  });
  return left.signal;
}

async function answerWhole(
  call: Call,
  { ask, voice }: Request,
  caller: Caller,
  { gateway, now }: TurnParts,
): Promise<Result> {
  const said = await gateway.answer(ask, caller);
  call.record.said = said;
  if (said.answer.error !== undefined) throw said.answer.error;
  const headers = { ...toHeaders(said.heading), ...processing(call, now) };
  return { body: voice.whole(said.heading, said.answer), headers };
}

async function answerInEvents(
  call: Call,
  { ask, voice }: Request,
  caller: Caller,
  { gateway, streams, now }: TurnParts,
): Promise<undefined> {
  const { response, record } = call;
  let key = "";
  let heading: Heading | undefined;
  let speak: ReturnType<typeof voice.stream> | undefined;
  const stream = streams.open(response, () => {
    response.writeHead(200, {
      ...eventHeaders,
      "x-request-id": call.id,
      ...processing(call, now),
      ...toHeaders(heading),
    });
  });
  const listener: Listener = {
    enter(given) {
      key = given;
    },
    begin(given) {
      heading = given;
      record.firstWordAt = now();
      speak = voice.stream(given);
    },
    tell: (events) => stream.write(speak?.(events) ?? ""),
  };
  try {
    record.said = await gateway.answer(ask, caller, listener);
    stream.end("");
  } catch (thrown) {
    // Before anything was sent a failure is a status; after a heartbeat it is told as the turn's end.
    if (!response.headersSent || response.destroyed) throw thrown;
    const error = toGatewayError(thrown);
    record.failure = error;
    record.bug = thrown;
    const bare = { key, createdAt: record.startedAt, model: ask.model, session: undefined, told: "stateless" } as const;
    const told = voice.stream(heading ?? { ...bare, contextItems: 0, leftOutItems: 0, remarks: [] });
    stream.end(told([{ type: "turn-start" }, { type: "turn-end", answer: toFailed(error, now()) }]));
  }
  return undefined;
}

const eventHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

function processing({ record }: Call, now: () => number): Record<string, string> {
  return { "openai-processing-ms": String(Math.max(0, Math.round(now() - record.startedAt))) };
}

function toFailed(error: GatewayError, endedAt: number): Answer {
  return { status: "failed", finish: "stop", items: [], notes: {}, error, endedAt };
}
