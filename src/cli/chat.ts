/** `portico chat`: a conversation at the terminal, in the sessions of the running gateway; where none runs, in its own. */
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { isObject } from "../config/problem.ts";
import { type Command, CommandError, UsageError } from "./command.ts";
import { ask, findGateway, readJson } from "./gateway.ts";
import { complain, messageOf, print, toLine, toPlain } from "./output.ts";
import { configOption, readSettings, type Settings } from "./settings.ts";
import { exitCodes } from "./signals.ts";

const usualSession = "terminal";

export const chat: Command = {
  summary: "Talk to the gateway, in a session that clients share.",
  usage: "chat [MESSAGE] [--session NAME] [--model NAME] [--url URL] [--config FILE]",
  maxPositionals: 1,
  options: {
    session: { value: "NAME", summary: `The session to continue. Default: ${usualSession}.` },
    model: { value: "NAME", summary: "The model to ask. Default: the configured one." },
    url: { value: "URL", summary: "The gateway, e.g. http://127.0.0.1:8600. Default: the configured one." },
    ...configOption,
  },
  notes: [
    "NAME is what other clients send as X-Session-Id: they continue the same conversation, and this continues theirs.",
    "Without MESSAGE, each line of the input is one. Ctrl-C stops it, and its turn; Ctrl-D quits.",
    "It sends the configured token. Where no gateway runs, it opens the store itself until it quits.",
    "Exits with 1 if an answer failed.",
  ],
  async run({ options, positionals }) {
    const { session = usualSession, url } = options;
    const settings = await readSettings(options);
    const { config, exampleModel = config.defaultAdapter } = settings;
    const { model = exampleModel } = options;
    const address = url === undefined ? await findGateway(config) : toAddress(url);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(exitCodes[signal]));
    const wanted = { session, model };
    const say = await (address === undefined ? openOwn(settings, wanted) : openRemote(address, settings, wanted));
    const { stdin: input, stdout: output } = process;
    const isTyped = positionals.length === 0 && input.isTTY && output.isTTY;
    if (isTyped) complain(`Session ${session}, at ${address ?? "no gateway"}, model ${toPlain(model)}. Ctrl-D quits.`);
    let failures = 0;
    for await (const content of positionals.length === 0 ? createInterface({ input }) : positionals) {
      if (content.trim() === "") continue;
      try {
        await printAnswer(await say(content));
      } catch (thrown) {
        complain(toLine(messageOf(thrown)));
        failures += 1;
      }
    }
    return failures > 0 ? 1 : 0;
  },
};

interface Wanted {
  readonly session: string;
  readonly model: string;
}

/** The answer in pieces; throws what went wrong. */
type Say = (content: string) => Promise<AsyncIterable<string>>;

/** As clients have it, too. */
function toAddress(url: string): string {
  if (!/^(https?:\/\/|unix:\/)./.test(url)) throw new UsageError("The option '--url' needs a URL.");
  return url.replace(/(\/v1)?\/*$/, "");
}

/** A gateway that nobody else reaches; what it has answered is kept, so it may end with the process. */
async function openOwn({ config }: Settings, { session, model }: Wanted): Promise<Say> {
  const [{ startPortico }, { createChannel }] = await Promise.all([import("../portico.ts"), import("../talk.ts")]);
  const http = { ...config.http, endpoints: { chat: false, responses: false } };
  const { gateway, ended } = await startPortico({ ...config, http, logLevel: "silent" }, {}, { mayMigrate: false });
  const channel = createChannel({ gateway, ended, model: async () => model });
  return (content) => channel.talk({ content, session, model });
}

/** Asks a running gateway at an endpoint that is on. */
function openRemote(address: string, { config, tokens }: Settings, { session, model }: Wanted): Say {
  const token = tokens.client ?? tokens.operator;
  if (token === undefined) throw new CommandError("There is no token to send: set gateway.http.auth_token.");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "x-session-id": session };
  const { chat, responses } = config.http.endpoints;
  const [path, field] = responses && !chat ? ["/v1/responses", "input"] : ["/v1/chat/completions", "messages"];
  return async (content) => {
    const body = JSON.stringify({ model, [field]: [{ role: "user", content }], stream: true, user: session });
    const response = await ask(address, { method: "POST", path, headers, body });
    if (response.statusCode === 200) return readAnswer(response);
    const told = await readJson(response).catch(() => undefined);
    const error = isObject(told) ? told["error"] : undefined;
    const why = isObject(error) ? error["message"] : `${address} is no gateway: status ${response.statusCode}`;
    throw new CommandError(String(why));
  };
}

/** Throws what the stream says went wrong. */
async function* readAnswer(response: IncomingMessage): AsyncGenerator<string> {
  for await (const line of createInterface({ input: response })) {
    if (!line.startsWith("data: {")) continue;
    const { error, choices, type, delta } = JSON.parse(line.slice("data: ".length)) as Chunk;
    if (error) throw new CommandError(error.message);
    yield (type === "response.output_text.delta" ? delta : choices?.[0]?.delta.content) ?? "";
  }
  if (!response.complete) throw new CommandError("The gateway broke the answer off.");
}

/** Of either endpoint. */
interface Chunk {
  readonly error?: { readonly message: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string | null } }[];
  readonly type?: string;
  readonly delta?: string;
}

async function printAnswer(pieces: AsyncIterable<string>): Promise<void> {
  let last = "\n";
  try {
    for await (const each of pieces) {
      const piece = toPlain(each);
      process.stdout.write(piece);
      last = piece || last;
    }
  } finally {
    if (!last.endsWith("\n")) print("");
  }
}
