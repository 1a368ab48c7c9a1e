/** What else there is about responses: retrieve, follow again, cancel, delete, list their input, count it, compact it. */
import { GatewayError } from "../core/errors.ts";
import type { Promised, Recalled } from "../core/gateway.ts";
import { isObject } from "../wires/fields.ts";
import {
  front,
  readCompactRequest,
  recall,
  type ResponsesVoice,
  writeCompaction,
  writeItem,
} from "../wires/responses/index.ts";
import { checkAsk } from "./asked.ts";
import { readBody } from "./body.ts";
import type { Call, Handler, Result, Route } from "./call.ts";
import { tellInEvents } from "./events.ts";
import { toRemarkHeaders } from "./headers.ts";
import { readItemsWanted, showsSeals, toPage, writeList } from "./lists.ts";
import { readLastEventId, readStartingAfter } from "./numbering.ts";
import { toQuery } from "./router.ts";
import { toCaller, toText, type TurnParts } from "./turn.ts";

export function createResponseRoutes(parts: TurnParts): readonly Route[] {
  const { gateway, sealOf } = parts;

  async function retrieve(call: Call): Promise<Result | undefined> {
    const { request, token, share, signal } = call;
    const query = toQuery(request.url ?? "");
    const { key, turn, voice } = await find(call, showsSeals(query));
    if (!readStream(query)) return { body: toText(turn, voice), headers: toRemarkHeaders(turn.heading.remarks) };
    const after = readStartingAfter(query) ?? readLastEventId(request.headers)?.number;
    const told = { voice, model: turn.heading.model, numbering: { after }, isRecalled: true };
    share.enter(true);
    return tellInEvents(call, told, parts, async (listener) => {
      const said = await gateway.follow(token.owner, key, listener, signal, after !== undefined);
      if (said === undefined) throw unknownResponse(call);
    });
  }

  async function cancel(call: Call): Promise<Result> {
    const { owner } = call.token;
    const turn = (await gateway.cancel(owner, keyIn(call))) ?? fail(unknownResponse(call));
    return { body: toText(turn, voiceOf(call, turn)) };
  }

  async function remove(call: Call): Promise<Result> {
    const { token, names } = call;
    if (!(await gateway.forget(token.owner, keyIn(call)))) throw unknownResponse(call);
    return { body: { id: names[0], object: "response", deleted: true } };
  }

  async function listInput(call: Call): Promise<Result> {
    const query = toQuery(call.request.url ?? "");
    const wanted = readItemsWanted(query);
    const { turn } = await find(call);
    const page = toPage("input" in turn ? turn.input : [], wanted);
    return { body: writeList(page, sealOf(call.token.owner), showsSeals(query)) };
  }

  async function countInput(call: Call): Promise<Result> {
    const { json } = await readBody(call);
    const { ask } = front.readRequest(withModel(json), circumstancesOf(call));
    checkAsk(call.token, ask);
    const input_tokens = await gateway.count(ask, toCaller(call, ask));
    return { body: { object: "response.input_tokens", input_tokens } };
  }

  /** What the user said, word for word, and a summary of all, to go on with; nothing is stored. */
  async function compact(call: Call): Promise<Result> {
    const { json } = await readBody(call);
    const ask = readCompactRequest(json, circumstancesOf(call));
    checkAsk(call.token, ask);
    const said = await gateway.answer(ask, { ...toCaller(call, ask), hint: undefined });
    if (!("answer" in said)) throw new Error("A compaction was only promised.");
    const { heading, answer, compacted = [] } = said;
    call.record.said = said;
    if (answer.error !== undefined) throw answer.error;
    const seal = sealOf(call.token.owner);
    const words = compacted.filter((item) => item.type === "message" && item.role === "user");
    const output = [
      ...words.map((item, at) => writeItem({ ...item, id: `msg_${heading.key}_${at}` }, seal)),
      ...answer.items.map((item) => writeItem(item, seal)),
    ];
    return { body: writeCompaction(heading, output, answer.usage) };
  }

  interface Found {
    readonly key: string;
    readonly turn: Promised | Recalled;
    readonly voice: ResponsesVoice;
  }

  async function find(call: Call, hasSeals = false): Promise<Found> {
    const key = keyIn(call);
    const turn = (await gateway.recall(call.token.owner, key)) ?? fail(unknownResponse(call));
    return { key, turn, voice: voiceOf(call, turn, hasSeals) };
  }

  /** A turn of the other dialect has no echo, and is no response. */
  function voiceOf(call: Call, { echo }: Promised | Recalled, hasSeals = false): ResponsesVoice {
    if (echo === undefined) throw unknownResponse(call);
    return recall(echo, { seal: sealOf(call.token.owner) }, hasSeals);
  }

  const circumstancesOf = ({ token, settings }: Call) => ({
    seal: sealOf(token.owner),
    exposesReasoning: settings.exposesReasoning,
  });

  const path = "/v1/responses/:id";
  return [
    toRoute("GET", path, retrieve),
    toRoute("DELETE", path, remove),
    toRoute("POST", `${path}/cancel`, cancel),
    toRoute("GET", `${path}/input_items`, listInput),
    toRoute("POST", "/v1/responses/input_tokens", countInput),
    toRoute("POST", "/v1/responses/compact", compact),
  ];
}

/** In any case: Python writes True. */
function readStream(query: URLSearchParams): boolean {
  switch (query.getAll("stream").join().toLowerCase()) {
    case "true":
    case "1":
      return true;
    case "false":
    case "0":
    case "":
      return false;
    default:
      throw new GatewayError("invalid_value", "Invalid 'stream': expected true or false.", { param: "stream" });
  }
}

/** The model is optional there; without one, the default adapter counts. */
function withModel(body: unknown): unknown {
  return isObject(body) && (body["model"] ?? null) === null ? { ...body, model: "default" } : body;
}

function keyIn(call: Call): string {
  const [, key] = /^resp_([0-9a-f]{20,64})$/.exec(call.names[0] ?? "") ?? [];
  return key ?? fail(unknownResponse(call));
}

function unknownResponse({ names }: Call): GatewayError {
  return new GatewayError("not_found", `Response with id '${names[0]}' not found.`);
}

function fail(error: GatewayError): never {
  throw error;
}

function toRoute(method: string, path: string, handle: Handler): Route {
  return { method, path, doors: ["responses"], handle };
}
