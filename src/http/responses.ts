/** What else there is about responses: retrieve, follow again, cancel, delete, list their input, count it, compact it. */
import { GatewayError } from "../core/errors.ts";
import type { Recalled } from "../core/gateway.ts";
import type { Promised } from "../core/live.ts";
import type { Operator } from "../core/store.ts";
import { invalid, isObject } from "../wires/fields.ts";
import { front, readCompactRequest, recall, writeCompaction, writeItem } from "../wires/responses/index.ts";
import type { Voice } from "../wires/wire.ts";
import { readBody } from "./body.ts";
import { behind, type Call, noteSaid, type Route } from "./call.ts";
import { toCaller } from "./caller.ts";
import { toErasureHeaders } from "./deletion.ts";
import { tellInEvents, toHeaders, toProcessing, toRemarkHeaders } from "./events.ts";
import { checkAsk } from "./models.ts";
import { readLastEventId, readStartingAfter } from "./numbering.ts";
import { readItemsWanted, showsSeals, toPage, writeList } from "./query.ts";
import { toQuery } from "./router.ts";
import { toCircumstances, toText, type TurnParts } from "./turn.ts";

export interface ResponseParts extends TurnParts {
  readonly store: Pick<Operator, "hasUnfinishedErasure">;
}

export function createResponseRoutes(parts: ResponseParts): readonly Route[] {
  const { gateway, store, sealOf, now } = parts;
  const path = "/v1/responses/:id";
  const toRoute = behind("responses");
  return [
    toRoute("GET", path, async (call) => {
      const { request, token, share, signal } = call;
      const query = toQuery(request.url);
      const { key, turn, voice } = await find(call, showsSeals(query));
      if (!readStream(query)) return { body: toText(turn, voice), headers: toRemarkHeaders(turn.heading.remarks) };
      const after = readStartingAfter(query) ?? readLastEventId(request.headers)?.number;
      const told = { voice, model: turn.heading.model, numbering: { after }, isRecalled: true };
      share.enter(true);
      return tellInEvents(call, told, parts, async (listener) => {
        const said = await gateway.follow(token.owner, key, listener, signal, after !== undefined);
        if (said === undefined) throw unknownResponse(call);
      });
    }),
    toRoute("DELETE", path, async (call) => {
      if (!(await gateway.forget(call.token.owner, keyIn(call)))) throw unknownResponse(call);
      return {
        body: { id: call.names[0], object: "response", deleted: true },
        headers: toErasureHeaders(store),
      };
    }),
    toRoute("POST", `${path}/cancel`, async (call) => {
      const turn = await gateway.cancel(call.token.owner, keyIn(call));
      if (turn === undefined) throw unknownResponse(call);
      return { body: toText(turn, voiceOf(call, turn)) };
    }),
    toRoute("GET", `${path}/input_items`, async (call) => {
      const query = toQuery(call.request.url);
      const wanted = readItemsWanted(query);
      const { turn } = await find(call);
      const page = toPage(turn.input, wanted);
      return { body: writeList(page, sealOf(call.token.owner), showsSeals(query)) };
    }),
    toRoute("POST", "/v1/responses/input_tokens", async (call) => {
      const { json } = await readBody(call);
      const { ask } = front.readRequest(withModel(json), toCircumstances(call, sealOf));
      checkAsk(call.token, ask);
      const input_tokens = await gateway.count(ask, toCaller(call, ask));
      return { body: { object: "response.input_tokens", input_tokens } };
    }),
    // What the user said, word for word, and a summary of all, to go on with; nothing is stored.
    toRoute("POST", "/v1/responses/compact", async (call) => {
      call.share.check(false);
      const { json } = await readBody(call);
      const ask = readCompactRequest(json, toCircumstances(call, sealOf));
      checkAsk(call.token, ask);
      call.share.enter(false);
      const said = await gateway.answer(ask, { ...toCaller(call, ask), hint: undefined });
      if (!("answer" in said)) throw new Error("A compaction was only promised.");
      noteSaid(call.record, said);
      const { heading, answer, compacted = [] } = said;
      if (answer.error !== undefined) throw answer.error;
      const seal = sealOf(call.token.owner);
      const words = compacted.filter((item) => item.type === "message" && item.role === "user");
      const output = [
        ...words.map((item, at) => writeItem({ ...item, id: `msg_${heading.key}_${at}` }, seal)),
        ...answer.items.map((item) => writeItem(item, seal)),
      ];
      const headers = toProcessing(call, now, toHeaders(heading));
      return { body: writeCompaction(heading, output, answer.usage), headers };
    }),
  ];

  async function find(call: Call, hasSeals = false) {
    const key = keyIn(call);
    const turn = await gateway.recall(call.token.owner, key);
    if (turn === undefined) throw unknownResponse(call);
    return { key, turn, voice: voiceOf(call, turn, hasSeals) };
  }

  /** A turn of the other dialect has no echo, and is no response. */
  function voiceOf(call: Call, { echo }: Promised | Recalled, hasSeals = false): Voice {
    if (echo === undefined) throw unknownResponse(call);
    return recall(echo, { seal: sealOf(call.token.owner) }, hasSeals);
  }
}

/** In any case: Python writes True. */
function readStream(query: URLSearchParams): boolean {
  const written = query.get("stream")?.toLowerCase() ?? "false";
  if (written !== "true" && written !== "false") invalid("stream", "Invalid 'stream': expected true or false.");
  return written === "true";
}

/** The model is optional there; without one, the default adapter counts. */
function withModel(body: unknown): unknown {
  return isObject(body) && (body["model"] ?? null) === null ? { ...body, model: "default" } : body;
}

function keyIn(call: Call): string {
  const [, key] = /^resp_([0-9a-f]{20,64})$/.exec(call.names[0] ?? "") ?? [];
  if (key === undefined) throw unknownResponse(call);
  return key;
}

function unknownResponse({ names }: Call): GatewayError {
  return new GatewayError("not_found", `Response with id '${names[0]}' not found.`);
}
