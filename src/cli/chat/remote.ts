/** A partner over HTTP: a gateway that runs already, here or on another machine. */
import { createUpstream, type UpstreamResponse } from "../../adapters/http/upstream.ts";
import { readStart } from "../../adapters/http/whole.ts";
import { isObject } from "../../adapters/json.ts";
import * as chat from "../../adapters/openai/chat/reply.ts";
import { createScrubber } from "../../adapters/openai/failure.ts";
import * as responses from "../../adapters/openai/responses/reply.ts";
import type { Delta } from "../../core/delta.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { frame } from "../../core/frame/frame.ts";
import type { Naming, Partner, Question } from "./partner.ts";

export interface RemoteOptions {
  readonly address: string;
  readonly token: string;
  readonly model: string;
  readonly naming: Naming | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Both endpoints speak of the same sessions; which of them is open, the first answer tells. */
const endpoints = [
  { path: "/v1/chat/completions", field: "messages", createReplyReader: chat.createReplyReader },
  { path: "/v1/responses", field: "input", createReplyReader: responses.createReplyReader },
] as const;

const otherToken =
  "A gateway that was started before a token was changed wants the old one: restart it, or name a file with its token (--token-file).";

/** A gateway that is alive is never silent for so long. */
const silenceMs = 600_000;

/** Whoever aborts leaves as any client does, and the gateway calls the turn off. */
export function openRemote({ address, token, model, naming, env }: RemoteOptions): Partner {
  const upstream = createUpstream({
    baseUrl: address,
    environment: env,
    connectMs: 5_000,
    firstByteMs: silenceMs,
    idleMs: silenceMs,
  });
  const scrub = createScrubber(token, {});
  let open: readonly (typeof endpoints)[number][] = endpoints;

  async function send({ messages, session }: Question, signal: AbortSignal) {
    const headers = {
      "content-type": "application/json",
      authorization: `Bearer ${token}`,
      ...(naming?.from === "header" && { [naming.name]: session }),
    };
    const user = naming?.from === "user" ? session : undefined;
    for (;;) {
      const [endpoint = endpoints[0], ...others] = open;
      const body = JSON.stringify({ model, [endpoint.field]: messages, stream: true, user });
      const response = await upstream.send({ method: "POST", path: endpoint.path, headers, body }, signal);
      if (response.status === 200) return { endpoint, response };
      const { message, code } = await readRefusal(response, address);
      const isClosed = code === "endpoint_disabled" || code === "endpoint_not_allowed";
      if (code === "invalid_api_key") throw new GatewayError("adapter_refused", `${message} ${otherToken}`);
      if (!isClosed || others.length === 0) throw new GatewayError("adapter_refused", message);
      open = others;
    }
  }

  async function* hear(question: Question, signal: AbortSignal): AsyncGenerator<readonly Delta[]> {
    const { endpoint, response } = await send(question, signal);
    try {
      const reader = endpoint.createReplyReader(scrub);
      while (!reader.isDone()) {
        const buffers = await response.pull();
        const deltas = buffers === undefined ? reader.end() : reader.read(buffers);
        if (deltas.length > 0) yield deltas;
        reader.check();
      }
    } finally {
      response.leave();
    }
  }

  return {
    ask: (question, signal) =>
      frame("", hear(question, signal), {
        async settle() {},
        explain,
        leave() {},
        now: () => new Date(),
      }),
    close: () => upstream.close(),
  };
}

/** What is an upstream to an adapter is the gateway to whoever talks to it. */
function explain(thrown: unknown): GatewayError {
  const { code, message } = toGatewayError(thrown);
  return new GatewayError(code, message.replace(/^The upstream\b/, "The gateway"));
}

async function readRefusal(
  response: UpstreamResponse,
  address: string,
): Promise<{ readonly message: string; readonly code?: unknown }> {
  const text = (await readStart(response)).toString("utf8");
  response.leave();
  try {
    const body: unknown = JSON.parse(text);
    const error = isObject(body) ? body["error"] : undefined;
    if (isObject(error) && typeof error["message"] === "string")
      return { message: error["message"], code: error["code"] };
  } catch {
    // Whoever answers in no JSON is none of ours, and is told as such.
  }
  return { message: `${address} answered with status ${response.status}, and not as a gateway does. Check the URL.` };
}
