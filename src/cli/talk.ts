/** One conversation over HTTP: asks, and prints the answer as it comes. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import type { Hint } from "../config/config.ts";
import { isObject } from "../config/problem.ts";
import { CommandError } from "./command.ts";
import { ask, type Asked } from "./gateway.ts";
import { messageOf } from "./house.ts";
import { complain, toLine, toPlain } from "./output.ts";

export interface TalkOptions {
  readonly address: string;
  /** Both have the same sessions. */
  readonly endpoint: "chat" | "responses";
  readonly token: string;
  readonly session: string;
  /** How a request names its session. */
  readonly hint: Hint;
  /** Every question carries what was said here, for a gateway that would not know it by the session. */
  readonly showsHistory: boolean;
}

export interface Talk {
  firstModel(): Promise<string>;
  answer(content: string, model: string): Promise<"answered" | "failed" | "stopped">;
  /** Stops the answer, and its turn; false if there is none. */
  stop(): boolean;
  /** Begins another conversation, and returns its session. */
  move(): string;
}

const endpoints = {
  chat: ["/v1/chat/completions", "messages"],
  responses: ["/v1/responses", "input"],
} as const;

interface Said {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export function createTalk({ address, endpoint, token, hint, showsHistory, ...options }: TalkOptions): Talk {
  const [path, field] = endpoints[endpoint];
  let { session } = options;
  let said: readonly Said[] = [];
  let answering: AbortController | undefined;

  async function send(asked: Asked): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...asked.headers };
    const response = await ask(address, { ...asked, headers });
    if (response.statusCode === 200) return response;
    const { error } = parse(await text(response));
    const found = isObject(error) ? error["message"] : `${address} is no gateway: status ${response.statusCode}`;
    throw new CommandError(String(found));
  }

  return {
    async firstModel() {
      const { data } = parse(await text(await send({ path: "/v1/models" })));
      const [first] = Array.isArray(data) ? (data as readonly { readonly id: string }[]) : [];
      if (first === undefined) throw new CommandError("The gateway lists no model. Name one with --model.");
      return first.id;
    },
    async answer(content, model) {
      const { signal } = (answering = new AbortController());
      const asked: Said = { role: "user", content };
      try {
        const headers = hint.type === "header" ? { [hint.name]: session } : {};
        const user = hint.type === "user" ? session : undefined;
        const messages = [...(showsHistory ? said : []), asked];
        const body = JSON.stringify({ model, [field]: messages, stream: true, user });
        const response = await send({ method: "POST", path, headers, body, signal });
        said = [...said, asked, { role: "assistant", content: await printAnswer(response) }];
        return "answered";
      } catch (thrown) {
        complain(signal.aborted ? "[stopped]" : toLine(messageOf(thrown)));
        return signal.aborted ? "stopped" : "failed";
      } finally {
        answering = undefined;
      }
    },
    stop() {
      answering?.abort();
      return answering !== undefined;
    },
    move() {
      session = `${options.session}-${randomBytes(4).toString("hex")}`;
      said = [];
      return session;
    },
  };
}

/** Either endpoint's stream; throws what it says went wrong. */
async function printAnswer(response: IncomingMessage): Promise<string> {
  const { stdout } = process;
  let answer = "";
  let failure: unknown;
  try {
    for await (const line of createInterface({ input: response })) {
      const event = parse(line.replace(/^data: /, ""));
      if (isObject(event["error"])) failure ??= event["error"]["message"];
      const piece = toPiece(event);
      answer += piece;
      if (piece !== "" && !stdout.write(toPlain(piece))) await once(stdout, "drain");
    }
  } finally {
    if (answer !== "" && !answer.endsWith("\n")) stdout.write("\n");
  }
  if (failure !== undefined) throw new CommandError(String(failure));
  if (!response.complete) throw new CommandError("The gateway broke the answer off.");
  return answer;
}

function toPiece({ type, delta, choices }: Readonly<Record<string, unknown>>): string {
  if (type === "response.output_text.delta") return String(delta);
  const [choice] = Array.isArray(choices) ? (choices as readonly unknown[]) : [];
  const said = isObject(choice) ? choice["delta"] : undefined;
  return isObject(said) && typeof said["content"] === "string" ? said["content"] : "";
}

function parse(json: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
