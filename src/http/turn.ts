/** The endpoints that take turns: a body goes in, an answer comes out, whole, as a stream of events, or promised. */
import { type Caller, type Gateway, type Heading, nobody, type Said } from "../core/gateway.ts";
import type { Promised } from "../core/live.ts";
import type { Ask } from "../core/turn.ts";
import { isObject } from "../wires/fields.ts";
import type { Circumstances, Front, Seal, Voice } from "../wires/wire.ts";
import { readBody } from "./body.ts";
import { type Admitted, type Call, type Handler, noteSaid, type Result } from "./call.ts";
import { toCaller } from "./caller.ts";
import { type EventParts, tellInEvents, toHeaders, toProcessing } from "./events.ts";
import { checkAsk } from "./models.ts";
import { readLastEventId } from "./numbering.ts";
import { toPath } from "./router.ts";

export interface TurnParts extends EventParts {
  readonly gateway: Gateway;
  readonly sealOf: (owner: string) => Seal;
}

export function createTurnHandler(front: Front, parts: TurnParts): Handler {
  const { gateway, sealOf } = parts;
  return async (call) => {
    const { request, share, token } = call;
    // It may join the turn of an earlier request: whether it begins one is known when the key is looked up.
    const isKeyed = request.headers["idempotency-key"] !== undefined;
    share.check(isKeyed);
    const read = readBody(call);
    const { bytes, json } = read instanceof Promise ? await read : read;
    const { ask, voice } = front.readRequest(withDeployment(json, call), toCircumstances(call, sealOf));
    checkAsk(token, ask);
    // A turn that outlives its request has a place of its own.
    share.enter(isKeyed || ask.background === true);
    const caller = toCaller(call, ask, bytes);
    if (!ask.stream) return answerWhole(call, ask, voice, caller, parts);
    const last = caller.idempotency && readLastEventId(request.headers);
    const numbering = caller.idempotency || ask.background === true ? { after: last?.number } : undefined;
    const asking = last === undefined ? caller : { ...caller, resumes: last.isOf };
    return tellInEvents(call, { voice, model: ask.model, numbering }, parts, async (listener) => {
      const said = await gateway.answer(ask, asking, listener);
      noteSaid(call.record, said);
    });
  };
}

export function toCircumstances({ token, settings }: Admitted, sealOf: TurnParts["sealOf"]): Circumstances {
  return { seal: sealOf(token.owner), exposesReasoning: settings.exposesReasoning };
}

/** A deployment in the path is the model, whatever the body says: Azure-style clients put anything there. */
function withDeployment(json: unknown, { request }: Call): unknown {
  const { deployment } = toPath(request.url ?? "");
  return deployment === undefined || !isObject(json) ? json : { ...json, model: decodeURIComponent(deployment) };
}

async function answerWhole(
  call: Call,
  ask: Ask,
  voice: Voice,
  caller: Caller,
  { gateway, now }: TurnParts,
): Promise<Result> {
  const { record } = call;
  const place = (heading: Heading): void => void Object.assign(record, { heading, key: heading.key });
  const said = await gateway.answer(ask, caller, ask.background === true ? undefined : { ...nobody, place });
  const { heading, isRepeated } = said;
  noteSaid(record, said);
  // A background turn was acknowledged: whatever came of it is in its object.
  if ("answer" in said && said.answer.error !== undefined && ask.background !== true) throw said.answer.error;
  return { body: toText(said, voice), headers: toProcessing(call, now, toHeaders(heading, isRepeated)) };
}

/** A turn as it stands, as JSON. */
export function toText(turn: Pick<Said, "heading" | "answer"> | Promised, voice: Voice): string {
  if ("answer" in turn) return voice.whole(turn.heading, turn.answer);
  return voice.progress?.(turn.heading, turn.status) ?? "";
}
