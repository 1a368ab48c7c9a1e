/** `portico chat`: a conversation at the terminal, in the sessions of the running gateway. */
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { isToken } from "../config/judges.ts";
import { isObject } from "../config/problem.ts";
import { type Command, CommandError, UsageError } from "./command.ts";
import { ask, type Asked, findGateway, readJson, toAddress } from "./gateway.ts";
import { complain, messageOf, print, toLine, toPlain } from "./output.ts";
import { configOption, readSettings, type Settings } from "./settings.ts";
import { exitCodes } from "./signals.ts";

const usualSession = "terminal";

export const chat: Command = {
  summary: "Talk to the running gateway, in a session that clients share.",
  usage: "chat [MESSAGE] [--session NAME] [--model NAME] [--url URL] [--token-file FILE] [--config FILE]",
  maxPositionals: 1,
  options: {
    session: { value: "NAME", summary: `The session to continue. Default: ${usualSession}.` },
    model: { value: "NAME", summary: "The model to ask. Default: the configured one, else the first that is listed." },
    url: { value: "URL", summary: "The gateway, e.g. http://127.0.0.1:8600. Default: the configured one." },
    "token-file": { value: "FILE", summary: "A file with the token to send. Default: the configured token." },
    ...configOption,
  },
  notes: [
    "NAME is what other clients send as X-Session-Id: they continue the same conversation, and this continues theirs.",
    "Without MESSAGE, each line of the input is one. Ctrl-C stops it, and its turn; Ctrl-D quits.",
    "Exits with 1 if an answer failed.",
  ],
  async run({ options, positionals }) {
    const { session = usualSession } = options;
    const settings = await readSettings(options);
    const address = await findAddress(options["url"], settings);
    const token = readToken(options["token-file"], settings);
    if (token === undefined) throw new CommandError(`There is no token here to send to ${address}: see --token-file.`);
    const send = createSender(address, token);
    const configured = options["url"] === undefined ? settings.exampleModel : undefined;
    const model = options["model"] ?? configured ?? (await findModel(send));
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(exitCodes[signal]));
    const { stdin: input, stdout: output } = process;
    const isTyped = positionals.length === 0 && input.isTTY && output.isTTY;
    if (isTyped) complain(`Session ${session}, at ${address}, model ${toPlain(model)}. Ctrl-D quits.`);
    let failures = 0;
    for await (const content of positionals.length === 0 ? createInterface({ input }) : positionals) {
      if (content.trim() === "") continue;
      const body = JSON.stringify({ model, messages: [{ role: "user", content }], stream: true, user: session });
      const headers = { "x-session-id": session };
      try {
        await printAnswer(await send({ method: "POST", path: "/v1/chat/completions", headers, body }));
      } catch (thrown) {
        complain(toLine(messageOf(thrown)));
        failures += 1;
      }
    }
    return failures > 0 ? 1 : 0;
  },
};

async function findAddress(url: string | undefined, { config }: Settings): Promise<string> {
  if (url !== undefined && !/^(https?:\/\/|unix:\/)./.test(url))
    throw new UsageError("The option '--url' needs a URL.");
  // As clients have it, too.
  if (url !== undefined) return url.replace(/(\/v1)?\/*$/, "");
  const found = await findGateway(config);
  if (found !== undefined) return found;
  const where = `${toAddress(config.http)} with the store ${config.storeFile}`;
  throw new CommandError(`No gateway answers at ${where}. Start it (\`portico start\`), or name another with --url.`);
}

function readToken(file: string | undefined, { tokens, generated }: Settings): string | undefined {
  if (file === undefined) return generated?.client.isNew ? undefined : (tokens.client ?? tokens.operator);
  const token = readFileSync(file, "utf8").trim();
  if (isToken(token) === undefined) return token;
  throw new CommandError(`${file} has no token: a token is one line of visible ASCII characters.`);
}

type Send = (asked: Asked) => Promise<IncomingMessage>;

/** Throws what the gateway says was wrong. */
function createSender(address: string, token: string): Send {
  return async (asked) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...asked.headers };
    const response = await ask(address, { ...asked, headers });
    if (response.statusCode === 200) return response;
    const body = await readJson(response).catch(() => undefined);
    const error = isObject(body) ? body["error"] : undefined;
    const why = isObject(error) ? error["message"] : `${address} is no gateway: status ${response.statusCode}`;
    throw new CommandError(String(why));
  };
}

async function findModel(send: Send): Promise<string> {
  const { data } = (await readJson(await send({ path: "/v1/models" }))) as { readonly data: readonly { id: string }[] };
  const [first] = data;
  if (first === undefined) throw new CommandError("The gateway lists no model. Name one with --model.");
  return first.id;
}

/** Throws what the stream says went wrong. */
async function printAnswer(response: IncomingMessage): Promise<void> {
  let last = "\n";
  let failure: string | undefined;
  for await (const line of createInterface({ input: response })) {
    if (!line.startsWith("data: {")) continue;
    const { error, choices } = JSON.parse(line.slice("data: ".length)) as Chunk;
    if (error !== undefined) failure ??= error.message;
    const piece = toPlain(choices?.[0]?.delta.content ?? "");
    process.stdout.write(piece);
    last = piece || last;
  }
  if (!last.endsWith("\n")) print("");
  if (failure !== undefined) throw new CommandError(failure);
  if (!response.complete) throw new CommandError("The gateway broke the answer off.");
}

interface Chunk {
  readonly error?: { readonly message: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string | null } }[];
}
