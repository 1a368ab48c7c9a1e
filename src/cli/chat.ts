/** `portico chat`: a conversation at the terminal, in the sessions of the running gateway. */
import { readFileSync } from "node:fs";
import { createInterface, type Interface } from "node:readline";
import { text } from "node:stream/consumers";
import { isToken } from "../config/judges.ts";
import { type Command, CommandError, UsageError } from "./command.ts";
import { findGateway, toAddress } from "./gateway.ts";
import { complain, toPlain } from "./output.ts";
import { configOption, readSettings, type Settings } from "./settings.ts";
import { exitCodes } from "./signals.ts";
import { createTalk, type Talk } from "./talk.ts";

const usualSession = "terminal";

export const chat: Command = {
  summary: "Talk to the running gateway, in a session that clients share.",
  usage: "chat [MESSAGE] [--session NAME] [--model NAME] [--url URL] [--token-file FILE] [--config FILE]",
  maxPositionals: 1,
  options: {
    session: { value: "NAME", summary: `The session to continue. Default: ${usualSession}.` },
    model: { value: "NAME", summary: "The model to ask. Default: the configured one, else the first that is listed." },
    url: {
      value: "URL",
      summary: "The gateway, e.g. http://127.0.0.1:8600 or unix:/path. Default: the configured one.",
    },
    "token-file": { value: "FILE", summary: "A file with the token to send. Default: the configured token." },
    ...configOption,
  },
  notes: [
    "NAME is what other clients send as X-Session-Id: they continue the same conversation, and this continues theirs.",
    "Enter sends a line; `/new` begins another conversation, `/exit` or Ctrl-D quits, Ctrl-C stops an answer.",
    'With MESSAGE it answers only that, followed by all of the piped input, if any: `portico chat "Explain this." < notes.txt`. Without, piped input is answered line by line. Exits with 1 if an answer failed.',
  ],
  async run({ options, positionals }) {
    const { session = usualSession } = options;
    const message = positionals[0] === undefined ? undefined : await readMessage(positionals[0]);
    const settings = await readSettings(options);
    const address = await findAddress(options.url, settings);
    const token = readToken(options["token-file"], settings);
    if (token === undefined) throw new CommandError(`There is no token here to send to ${address}: see --token-file.`);
    const { hints, showsHistory, endpoints } = settings.config.http;
    const endpoint = endpoints.responses && !endpoints.chat ? "responses" : "chat";
    const usualHint = { type: "header", name: "x-session-id" } as const;
    const hint = hints.find((each) => each.type === "header" && each.name === usualHint.name) ?? hints[0] ?? usualHint;
    const talk = createTalk({ address, endpoint, token, session, hint, showsHistory });
    const configured = options.url === undefined ? settings.exampleModel : undefined;
    const model = options.model ?? configured ?? (await talk.firstModel());
    process.once("SIGTERM", () => process.exit(exitCodes.SIGTERM));
    if (message !== undefined) return answerOne(talk, model, message);
    const isTyped = process.stdin.isTTY && process.stdout.isTTY;
    if (isTyped)
      complain(`Session ${session}, at ${address}, model ${toPlain(model)}. /new begins another, /exit quits.`);
    return converse(talk, model, isTyped);
  },
};

/** What was said on the command line, and behind it what is piped. */
async function readMessage(given: string): Promise<string> {
  const piped = process.stdin.isTTY ? "" : await text(process.stdin);
  const parts = [given, piped].filter((part) => part.trim() !== "");
  if (parts.length === 0) throw new UsageError("The message is empty.");
  return parts.join("\n\n");
}

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

async function answerOne(talk: Talk, model: string, message: string): Promise<number> {
  process.once("SIGINT", () => talk.stop());
  const outcome = await talk.answer(message, model);
  return outcome === "stopped" ? exitCodes.SIGINT : outcome === "failed" ? 1 : 0;
}

/** Line by line, until the input ends or its user quits. */
async function converse(talk: Talk, model: string, isTyped: boolean): Promise<number> {
  const { stdin: input, stdout: output } = process;
  const lines = createInterface(isTyped ? { input, output, prompt: "> " } : { input });
  const ask = (): void => (isTyped ? lines.prompt() : undefined);
  let isStopped = false;
  // Ctrl-C stops an answer; if there is none, it quits.
  (isTyped ? lines : process).on("SIGINT", () => {
    isStopped = !isTyped;
    if (!talk.stop() || isStopped) lines.close();
  });
  let failures = 0;
  ask();
  for await (const line of lines as Interface) {
    if (line.trim() === "/exit" || isStopped) break;
    if (line.trim() === "/new") complain(`A new conversation: session ${talk.move()}`);
    else if (line.trim() !== "" && (await talk.answer(line, model)) === "failed") failures += 1;
    ask();
  }
  lines.close();
  if (isStopped) return exitCodes.SIGINT;
  return failures > 0 && !isTyped ? 1 : 0;
}
