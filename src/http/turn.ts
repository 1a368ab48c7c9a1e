/** The endpoints that take turns: a body goes in, an answer comes out, whole, as a stream of events, or promised. */
import type { Caller, Gateway, Heading, Promised, Said } from "../core/gateway.ts";
import type { Ask } from "../core/turn.ts";
import type { Circumstances, Seal, Voice } from "../wires/wire.ts";
import { checkAsk } from "./asked.ts";
import { type Body, readBody } from "./body.ts";
import type { Call, Handler, Result } from "./call.ts";
import { type EventParts, tellInEvents, toProcessing } from "./events.ts";
import { toHeaders } from "./headers.ts";
import { readHint } from "./hint.ts";
import { readIdempotency } from "./idempotency.ts";
import { readLastEventId } from "./numbering.ts";
import { toPath } from "./router.ts";

export interface TurnParts extends EventParts {
  readonly gateway: Gateway;
  readonly sealOf: (owner: string) => Seal;
}

/** What a wire reads of a body. */
export interface TurnFront {
  readRequest(body: unknown, circumstances: Circumstances): { readonly ask: Ask; readonly voice: TurnVoice };
}

export interface TurnVoice extends Voice {
  /** A turn that is not over; only a wire with background turns has it. */
  progress?(heading: Heading, status: Promised["status"]): string;
}

export function createTurnHandler(front: TurnFront, parts: TurnParts): Handler {
  const { gateway, sealOf } = parts;
  return async (call) => {
    const { token, settings, request } = call;
    const body = await readBody(call);
    const circumstances = { seal: sealOf(token.owner), exposesReasoning: settings.exposesReasoning };
    const { ask, voice } = front.readRequest(withDeployment(body.json, call), circumstances);
    checkAsk(token, ask);
    const caller = toCaller(call, ask, body);
    if (!ask.stream) return answerWhole(call, ask, voice, caller, parts);
    const last = caller.idempotency && readLastEventId(request.headers);
    const numbering = caller.idempotency || ask.background === true ? { after: last?.number } : undefined;
    return tellInEvents(call, { voice, model: ask.model, numbering }, parts, async (listener) => {
      const said = await gateway.answer(ask, { ...caller, resumes: last?.isOf }, listener);
      if ("answer" in said) call.record.said = said;
    });
  };
}

/** A deployment in the path is the model, whatever the body says: Azure-style clients put anything there. */
function withDeployment(json: unknown, { request }: Call): unknown {
  const { deployment } = toPath(request.url ?? "");
  if (deployment === undefined || typeof json !== "object" || json === null) return json;
  return { ...json, model: decodeURIComponent(deployment) };
}

/** `body`: of a request that may have a key. */
export function toCaller(call: Call, ask: Pick<Ask, "user">, body?: Body): Caller {
  const { request, settings, token, share, record } = call;
  const hint = readHint(settings.hints, request.headers, ask.user);
  const shows = token.showsHistory ?? settings.showsHistory;
  return {
    owner: token.owner,
    hint: hint?.value,
    shows: shows || hint?.shows === true,
    signal: call.signal,
    trace: record.trace,
    hold: share.hold,
    idempotency: body && readIdempotency(request, hint?.value, body.bytes),
  };
}

async function answerWhole(
  call: Call,
  ask: Ask,
  voice: TurnVoice,
  caller: Caller,
  { gateway, now }: TurnParts,
): Promise<Result> {
  const said = await gateway.answer(ask, caller);
  const { heading, isRepeated } = said;
  call.record.heading = heading;
  if ("answer" in said) {
    call.record.said = said;
    // A background turn was acknowledged: whatever came of it is in its object.
    if (said.answer.error !== undefined && ask.background !== true) throw said.answer.error;
  }
  return { body: toText(said, voice), headers: { ...toHeaders(heading, isRepeated), ...toProcessing(call, now) } };
}

/** A turn as it stands, as JSON. */
export function toText(turn: Pick<Said, "heading" | "answer"> | Promised, voice: TurnVoice): string {
  if ("answer" in turn) return voice.whole(turn.heading, turn.answer);
  return voice.progress?.(turn.heading, turn.status) ?? "";
}
