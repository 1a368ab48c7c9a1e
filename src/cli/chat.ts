/** `portico chat`: a conversation at the terminal, in the sessions that every client shares. */
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { toHint, toNaming } from "../channel.ts";
import { type Config, hasListener, type Hint } from "../config/config.ts";
import { isToken } from "../config/headers.ts";
import type { Loaded } from "../config/load.ts";
import { findToken } from "../config/token.ts";
import { codeOf, GatewayError, messageOf } from "../core/errors.ts";
import { toDigest } from "../http/auth.ts";
import { findModel } from "../model.ts";
import { unnamedOwner } from "../parts.ts";
import type { ChatBackend } from "./chat/backend.ts";
import { readEarlier } from "./chat/earlier.ts";
import { pasteMarks } from "./chat/messages.ts";
import { type Arguments, type Command, CommandError, UsageError } from "./command.ts";
import { explainFailure } from "./failure.ts";
import { toPlain } from "./sessions/text.ts";
import { configOption, readSettings } from "./settings.ts";
import { exitCodes } from "./signals.ts";
import { type Terminal, toPath } from "./terminal.ts";

const usualSession = "terminal";

export const chat: Command = {
  summary: "Talk to the gateway, in a session that other clients can share.",
  usage: "chat [MESSAGE] [--session NAME] [--model NAME] [--url URL] [--token-file FILE] [--config FILE]",
  maxPositionals: 1,
  options: {
    session: { value: "NAME", summary: `The session to continue. Default: ${usualSession}.` },
    model: {
      value: "NAME",
      summary:
        "The model to ask. Default: the one that the configuration names, else the first that the gateway lists.",
    },
    url: { value: "URL", summary: "The gateway to talk to, e.g. http://127.0.0.1:8600 or unix:/path." },
    "token-file": { value: "FILE", summary: "A file with the token to send. Default: the configured token." },
    ...configOption,
  },
  notes: [
    "Talks to the gateway at the configured address, if it has the configured store. If none answers there, or both endpoints are off, it opens the gateway in this process, without a listener, for as long as the conversation lasts.",
    "NAME is what other clients send as X-Session-Id: they continue the same conversation, and this continues theirs.",
    "",
    "Enter sends a message; what is pasted is one, and Alt-Enter begins another line of it. `/new` begins another conversation, `/exit` or Ctrl-D quits, Ctrl-C stops an answer or clears what was typed, `/help` lists these. Other lines that begin with `/` and a word are not sent; begin them with a blank.",
    'With MESSAGE it answers only that, followed by all of the piped input, if any: `portico chat "Explain this." < notes.txt`. Without, piped input is answered line by line. Exits with 1 if an answer failed, or a line was not sent.',
  ],
  async run({ options, positionals }, terminal) {
    const session = readSession(options["session"] ?? usualSession);
    const loaded = await readSettings(options, terminal);
    const message = await readMessage(positionals[0], terminal, loaded.config.http.limits.maxBodyBytes);
    const naming = toNaming(loaded.config.sessions.hints);
    const isTerminal = terminal.output.isTTY === true;
    const isInteractive = message === undefined && terminal.isInteractive && isTerminal;
    const { hint } = toHint(naming, session);
    const remind = async (owner: string): Promise<string | undefined> =>
      isInteractive && hint !== undefined ? readEarlier(loaded.config.sessions.store, owner, hint) : undefined;
    const { backend, where, alwaysResends, earlier } = await openBackend(options, loaded, naming, remind, terminal);
    try {
      const model = await chooseModel(backend, options, loaded);
      const { askOnce, converse } = await import("./chat/converse.ts");
      const stopped = new AbortController();
      let code = 0;
      terminal.onSignal((signal) => {
        code = exitCodes[signal];
        stopped.abort();
      });
      const isSimple = terminal.env["TERM"] === "dumb";
      if (isInteractive && !isSimple) markPastes(terminal);
      const commands = message === undefined ? " /new begins another, /exit quits." : "";
      terminal.complain(`Session ${session}, ${where}, model ${toPlain(model)}.${commands}`);
      if (earlier !== undefined && !alwaysResends) terminal.complain(earlier);
      const conversation = {
        input: terminal.input,
        output: terminal.output,
        isInteractive,
        isSimple,
        complain: (line: string) => terminal.complain(line),
        session,
        model,
        // If no hint names the session, or if resending is expected.
        showsHistory: naming === undefined || alwaysResends,
        showsWaiting: isTerminal && !isSimple,
        stopped: stopped.signal,
      };
      const failures = await (message === undefined
        ? converse(backend, conversation)
        : askOnce(backend, conversation, message));
      return code === 0 && failures > 0 && !isInteractive ? 1 : code;
    } finally {
      await backend.close();
    }
  },
};

/** The message of the command line, followed by what is piped; undefined if the command line has none. */
async function readMessage(
  given: string | undefined,
  terminal: Terminal,
  maxBytes: number,
): Promise<string | undefined> {
  if (given === undefined) return undefined;
  const piped = terminal.isInteractive ? "" : await text(readUpTo(maxBytes, terminal.input));
  const parts = [given, piped].filter((part) => part.trim() !== "");
  if (parts.length === 0) throw new UsageError("The message is empty.");
  return parts.join("\n\n");
}

/** What no gateway takes is not read to its end, which it may not have. */
async function* readUpTo(maxBytes: number, input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of input) {
    size += chunk.length;
    if (size > maxBytes) {
      const most = `${maxBytes} bytes, the most that a request may have (gateway.http.limits.max_body_bytes)`;
      throw new CommandError(`Standard input has more than ${most}. Send less.`);
    }
    yield chunk;
  }
}

/** Until the process ends, however it does: a shell would not expect them. */
function markPastes({ output, onExit }: Terminal): void {
  output.write(pasteMarks.on);
  onExit(() => output.write(pasteMarks.off));
}

interface Opened {
  readonly backend: ChatBackend;
  readonly where: string;
  readonly alwaysResends: boolean;
  /** What was said last in the session, if that can be known. */
  readonly earlier: string | undefined;
}

/** A gateway that answers at the given or the configured address, else one in this process. Throws if neither works. */
async function openBackend(
  options: Arguments["options"],
  { config }: Loaded,
  naming: Hint | undefined,
  remind: (owner: string) => Promise<string | undefined>,
  terminal: Terminal,
): Promise<Opened> {
  const { url } = options;
  const { alwaysResends } = config.sessions;
  const address = url === undefined ? await findGateway(config, terminal) : readAddress(url);
  if (address !== undefined) {
    const token = readToken(options["token-file"], config, terminal);
    if (token === undefined) {
      const remedy = "name a file that holds one (--token-file).";
      throw new CommandError(`There is no token here to send to ${address}; ${remedy}`);
    }
    const { openRemote } = await import("./chat/remote.ts");
    const backend = openRemote({ address, token, naming, env: terminal.env });
    const named = config.http.tokens.find(({ sha256 }) => toDigest(token).equals(sha256));
    // A gateway elsewhere has another store.
    const earlier = url === undefined ? await remind(named?.owner ?? unnamedOwner) : undefined;
    return { backend, where: `at ${address}`, alwaysResends: named?.alwaysResends ?? alwaysResends, earlier };
  }
  const { openLocal } = await import("./chat/local.ts");
  try {
    const backend = await openLocal(config, naming);
    return { backend, where: "in this process", alwaysResends, earlier: await remind(unnamedOwner) };
  } catch (thrown) {
    const isTaken = thrown instanceof GatewayError && thrown.code === "store_unavailable";
    const remedy = "If that is a gateway listening elsewhere, talk to it with --url.";
    throw new CommandError(isTaken ? `${thrown.message} ${remedy}` : explainFailure(thrown, config.http));
  }
}

/** A gateway elsewhere has other models than this configuration. Throws if none can be found. */
async function chooseModel(
  backend: ChatBackend,
  { model, url }: Arguments["options"],
  { exampleModel }: Loaded,
): Promise<string> {
  if (model !== undefined) return model;
  if (url === undefined && exampleModel !== undefined) return exampleModel;
  try {
    return await findModel(() => backend.models(), "Name one with --model.", exampleModel);
  } catch (thrown) {
    const why = thrown instanceof Error && isOfAll(thrown.cause) ? thrown.cause : thrown;
    throw new CommandError(toPlain(messageOf(why)));
  }
}

/** Naming a model would not help if a gateway is unreachable or takes nothing now. */
function isOfAll(failure: unknown): boolean {
  if (!(failure instanceof GatewayError)) return false;
  const isNetwork = failure.cause instanceof Error && "code" in failure.cause;
  return failure.code === "adapter_error" ? isNetwork : comesLater.has(failure.code);
}

const comesLater: ReadonlySet<string> = new Set(["adapter_timeout", "adapter_rate_limit", "overloaded"]);

/** The gateway's address, if it answers. Whoever merely has its port does not get the token. */
async function findGateway({ http, sessions }: Config, terminal: Terminal): Promise<string | undefined> {
  if (!hasListener(http)) return undefined;
  const { probeGateway, toAddress } = await import("./probe.ts");
  const address = toAddress(http);
  if ((await probeGateway(address)) !== "gateway") return undefined;
  const { readHolding } = await import("./holder.ts");
  const holding = readHolding(sessions.store);
  if (holding === "held" || holding === "no-sign") return address;
  const rest = "may not be this store's gateway and gets no token. If you trust it, talk to it with --url.";
  // Its store is not ours to open.
  if (holding === "unreadable") {
    throw new CommandError(`This user may not read the store's lock, so whoever answers at ${address} ${rest}`);
  }
  terminal.complain(`Whoever answers at ${address} does not have this store open, so it ${rest}`);
  return undefined;
}

/** The generated token in a run without a file; else the one that opens the endpoints. */
function readToken(file: string | undefined, config: Config, terminal: Terminal): string | undefined {
  if (file !== undefined) return readTokenFile(toPath(file, terminal));
  if (config.file === undefined) return findToken(config.dataDir)?.token;
  return config.http.authToken ?? config.auth.token;
}

function readTokenFile(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (thrown) {
    throw new CommandError(`${file}: the token cannot be read (${codeOf(thrown)}); name another file.`);
  }
  if (isToken(token)) return token;
  throw new CommandError(`${file} contains no token: a token is one line of visible ASCII characters.`);
}

/** As `portico start` prints it, or as clients have it, with `/v1` at the end. */
function readAddress(url: string): string {
  const address = url.replace(/\/+$/, "").replace(/:?\/v1$/, "");
  if (address.startsWith("unix:/") || (URL.canParse(address) && /^https?:/.test(address))) return address;
  throw new UsageError(`The option '--url' needs a URL like http://127.0.0.1:8600 or unix:/path, not '${url}'.`);
}

/** It is sent in a header, which loses spaces at the ends. */
function readSession(name: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?$/.test(name)) return name;
  throw new UsageError("The option '--session' needs a name of at most 200 ASCII characters.");
}
