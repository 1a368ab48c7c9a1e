/** A partner over HTTP: a running gateway, on this machine or another. */
import { createUpstream, headerOf, type UpstreamResponse } from "../../adapters/http/upstream.ts";
import { readStart, readWhole } from "../../adapters/http/whole.ts";
import { isObject, objectAt, parseJson } from "../../adapters/json.ts";
import * as chat from "../../adapters/openai/chat/reply.ts";
import { createScrubber } from "../../adapters/http/refusal.ts";
import { readModelNames } from "../../adapters/openai/json.ts";
import * as responses from "../../adapters/openai/responses/reply.ts";
import type { ReplyReader } from "../../adapters/openai/stream.ts";
import type { Hint } from "../../config/config.ts";
import type { Delta } from "../../core/delta.ts";
import { type ErrorCode, GatewayError, toGatewayError } from "../../core/errors.ts";
import { frame } from "../../core/frame/frame.ts";
import { leaveOnReturn } from "../../core/leaving.ts";
import type { ChatBackend, Question } from "./backend.ts";

export interface RemoteOptions {
  readonly address: string;
  readonly token: string;
  /** Where a request carries a session's name. */
  readonly naming: Hint | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Both endpoints share the same sessions; the first answer shows which of them is open. */
const endpoints = [
  { path: "/v1/chat/completions", field: "messages", createReplyReader: chat.createReplyReader },
  { path: "/v1/responses", field: "input", createReplyReader: responses.createReplyReader },
] as const;

const otherToken =
  "A gateway started before its token changed expects the old one: restart it, or name a file with its token (--token-file).";

/** A live gateway is never silent for so long. */
const silenceMs = 600_000;

/** A gateway's adapters have five seconds each. */
const listMs = 15_000;
const maxListBytes = 16 * 1024 * 1024;

/** Aborting disconnects as any client does, and the gateway cancels the turn. */
export function openRemote({ address, token, naming, env }: RemoteOptions): ChatBackend {
  const upstream = createUpstream({
    baseUrl: address,
    environment: env,
    connectMs: 5_000,
    firstByteMs: silenceMs,
    idleMs: silenceMs,
  });
  const scrub = createScrubber([token]);
  const authorization = `Bearer ${token}`;
  let open: readonly (typeof endpoints)[number][] = endpoints;

  async function models(): Promise<readonly string[]> {
    const request = { method: "GET", path: "/v1/models", headers: { authorization }, totalMs: listMs } as const;
    const response = await rewordErrors(upstream.send(request, new AbortController().signal));
    try {
      if (response.status !== 200) throw await readRefusal(response, address);
      const listed = readModelNames(parseJson(await rewordErrors(readWhole(response, maxListBytes))));
      if (listed === undefined) throw notAGateway(address, response.status);
      return listed;
    } finally {
      response.leave();
    }
  }

  async function send({ messages, session, model }: Question, signal: AbortSignal) {
    const headers = {
      "content-type": "application/json",
      authorization,
      ...(naming?.type === "header" && { [naming.name]: session }),
    };
    const user = naming?.type === "user" ? session : undefined;
    for (;;) {
      const [{ path, field, createReplyReader } = endpoints[0], ...others] = open;
      const body = JSON.stringify({ model, [field]: messages, stream: true, user });
      const response = await rewordErrors(upstream.send({ method: "POST", path, headers, body }, signal));
      if (response.status === 200) return { response, reader: createReplyReader(scrub) };
      const refusal = await readRefusal(response, address);
      const isClosed = refusal.wireCode === "endpoint_disabled" || refusal.wireCode === "endpoint_not_allowed";
      if (!isClosed || others.length === 0) throw refusal;
      open = others;
    }
  }

  return {
    models,
    async ask(question, signal) {
      const { response, reader } = await send(question, signal);
      const events = frame("", streamAnswer(response, reader), {
        async settle() {},
        explain: toGatewayError,
        end() {},
        now: () => new Date(),
      });
      const leave = () => response.leave();
      return {
        history: headerOf(response, "x-portico-history"),
        sessionId: headerOf(response, "x-portico-session"),
        events: leaveOnReturn(events, leave),
      };
    },
    close: () => upstream.close(),
  };
}

async function* streamAnswer(response: UpstreamResponse, reader: ReplyReader): AsyncGenerator<readonly Delta[]> {
  try {
    while (!reader.isDone()) {
      const buffers = await rewordErrors(response.pull());
      const deltas = buffers === undefined ? reader.end() : reader.read(buffers);
      if (deltas.length > 0) yield deltas;
      checkReader(reader);
    }
  } finally {
    response.leave();
  }
}

/** Rewords errors of our own connection: what is an upstream to an adapter is the gateway here. */
async function rewordErrors<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (thrown) {
    throw nameGateway(toGatewayError(thrown));
  }
}

function nameGateway({ code, message, cause }: GatewayError): GatewayError {
  const isReachable = !(cause instanceof Error && "code" in cause && unreachableCodes.has(String(cause.code)));
  const remedy = isReachable ? "" : " Check that it is running, and its URL.";
  return new GatewayError(code, message.replace(/\b([Tt])he upstream\b/, "$1he gateway") + remedy, { cause });
}

const unreachableCodes: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT", "ENOTFOUND"]);

/** A malformed stream is the gateway's fault; a failure it reports is shown in its own words, without our prefix. */
function checkReader(reader: ReplyReader): void {
  try {
    reader.check();
  } catch (thrown) {
    const failure = toGatewayError(thrown);
    if (failure.code === "adapter_protocol") throw nameGateway(failure);
    throw new GatewayError(failure.code, failure.message.replace(/^The upstream failed: /, ""));
  }
}

/** The error that a gateway sends instead of an answer, with its code. */
async function readRefusal(response: UpstreamResponse, address: string): Promise<GatewayError> {
  const text = await readStart(response);
  response.leave();
  const body = parseJson(text);
  const { message, code } = (isObject(body) ? objectAt(body, "error") : undefined) ?? {};
  if (typeof message !== "string") return notAGateway(address, response.status);
  if (code === "invalid_api_key") return new GatewayError("adapter_refused", `${message} ${otherToken}`);
  const wireCode = typeof code === "string" ? code : undefined;
  const meaning = code === "adapter_refused" ? code : toCode(response.status);
  return new GatewayError(meaning, message, { wireCode });
}

/** Whoever answers otherwise is no gateway. */
function notAGateway(address: string, status: number): GatewayError {
  const message = `${address} answered with status ${status}, but not like a gateway. Check the URL.`;
  return new GatewayError(toCode(status), message);
}

/** Distinguishes refusals that only last for a while. */
function toCode(status: number): ErrorCode {
  if (status === 429) return "adapter_rate_limit";
  return status === 503 ? "overloaded" : "adapter_error";
}
