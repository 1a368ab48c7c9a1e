/** One conversation over HTTP: asks, and prints the answer as it comes. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { json, text } from "node:stream/consumers";
import type { Hint } from "../config/config.ts";
import { isObject } from "../config/problem.ts";
import { CommandError } from "./command.ts";
import { ask, type Asked } from "./gateway.ts";
import { messageOf } from "./house.ts";
import { complain, toLine, toPlain } from "./output.ts";

export interface TalkOptions {
  readonly address: string;
  readonly token: string;
  readonly session: string;
  /** How a request names its session. */
  readonly hint: Hint | undefined;
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

/** Both endpoints have the same sessions. */
const endpoints = [
  ["/v1/chat/completions", "messages"],
  ["/v1/responses", "input"],
] as const;

interface Said {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export function createTalk({ address, token, hint, ...options }: TalkOptions): Talk {
  let { session, showsHistory } = options;
  let said: readonly Said[] = [];
  let answering: AbortController | undefined;

  async function send(asked: Asked): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...asked.headers };
    const response = await ask(address, { ...asked, headers });
    if (response.statusCode === 200) return response;
    throw await readRefusal(response);
  }

  /** On the first endpoint that is open. */
  async function question(messages: readonly Said[], model: string, signal: AbortSignal): Promise<IncomingMessage> {
    const headers = hint?.type === "header" ? { [hint.name]: session } : {};
    const user = hint?.type === "user" ? session : undefined;
    let refusal: unknown;
    for (const [path, field] of endpoints) {
      const body = JSON.stringify({ model, [field]: messages, stream: true, user });
      try {
        return await send({ method: "POST", path, headers, body, signal });
      } catch (thrown) {
        if (!(thrown instanceof Refusal) || !isClosed.has(thrown.code)) throw thrown;
        refusal ??= thrown;
      }
    }
    throw refusal;
  }

  return {
    async firstModel() {
      const listed = (await json(await send({ path: "/v1/models" }))) as {
        readonly data: readonly { readonly id: string }[];
      };
      const [first] = listed.data;
      if (first === undefined) throw new CommandError("The gateway lists no model. Name one with --model.");
      return first.id;
    },
    async answer(content, model) {
      const { signal } = (answering = new AbortController());
      const asked: Said = { role: "user", content };
      try {
        const response = await question([...(showsHistory ? said : []), asked], model, signal);
        const answer = await printAnswer(response);
        if (!showsHistory && said.length > 0 && response.headers["x-portico-history"] === "new") {
          complain("[the gateway does not continue this by itself: from now on, what was said here is sent along]");
          showsHistory = true;
        }
        said = [...said, asked, { role: "assistant", content: answer }];
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

/** The gateway's own words. */
class Refusal extends CommandError {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const isClosed: ReadonlySet<string> = new Set(["endpoint_disabled", "endpoint_not_allowed"]);

async function readRefusal(response: IncomingMessage): Promise<CommandError> {
  const { error } = parse(await text(response));
  if (!isObject(error))
    return new CommandError(`It answered with status ${response.statusCode}, but not like a gateway.`);
  const remedy =
    error["code"] === "invalid_api_key" ? " A file with another token may be named with --token-file." : "";
  return new Refusal(String(error["code"]), `${String(error["message"])}${remedy}`);
}

/** Either endpoint's stream; throws what it says went wrong. */
async function printAnswer(response: IncomingMessage): Promise<string> {
  const { stdout } = process;
  let answer = "";
  let failure: unknown;
  try {
    for await (const line of createInterface({ input: response })) {
      if (!line.startsWith("data: {")) continue;
      const event = parse(line.slice("data: ".length));
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

function toPiece(event: Readonly<Record<string, unknown>>): string {
  if (event["type"] === "response.output_text.delta") return String(event["delta"]);
  const [choice] = Array.isArray(event["choices"]) ? (event["choices"] as readonly unknown[]) : [];
  const delta = isObject(choice) ? choice["delta"] : undefined;
  return isObject(delta) && typeof delta["content"] === "string" ? delta["content"] : "";
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
