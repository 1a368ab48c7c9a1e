/** `portico start`: runs the gateway until it is told to stop, and reloads its configuration when told to. */
import { dirname } from "node:path";
import type { Config } from "../config/config.ts";
import type { Loaded } from "../config/load.ts";
import { ConfigError } from "../config/problem.ts";
import { fileOfStore } from "../config/store.ts";
import { findOrCreateToken, type GeneratedToken, storeToken } from "../config/token.ts";
import { findFixed } from "../fixed.ts";
import { readAddress } from "../stores/redis/address.ts";
import { readVersion } from "../version.ts";
import { type Command, CommandError } from "./command.ts";
import { nameOf } from "./help.ts";
import { explainFailure } from "./failure.ts";
import type { Runtime, Running } from "./runtime.ts";
import { configOption, describeProblems, readSettings, type SettingsOptions } from "./settings.ts";
import type { Terminal } from "./terminal.ts";
import { listenForSignals } from "./signals.ts";
import { messageOf } from "../core/errors.ts";

export const start: Command = {
  summary: "Run the gateway.",
  usage: "start [--config FILE] [--bind ADDRESS] [--port NUMBER]",
  options: {
    ...configOption,
    bind: { value: "ADDRESS", summary: "Listen here instead of at gateway.http.bind." },
    port: { value: "NUMBER", summary: "Listen on this port instead of gateway.http.port." },
  },
  notes: [
    "Without a config file, both endpoints and the console are on at 127.0.0.1:8600, and the first run generates a token.",
    "SIGINT and SIGTERM let running turns finish; a second signal after a moment stops at once.",
    "SIGHUP reloads the configuration: new requests see all of it or, if anything is wrong, none. What needs a restart, such as another port, waits until running turns have finished. At a terminal SIGHUP stops the gateway, because it means that the window was closed.",
  ],
  async run({ options }, terminal, runtime) {
    // A signal may come right after the start.
    const signals = listenForSignals(terminal);
    try {
      let gateway = await open(await readAll(options, terminal), runtime);
      terminal.outlastOutput();
      signals.begin();
      terminal.print(describeStart(gateway, terminal));
      while ((await signals.next()) === "reload") {
        // A file that is missing for a moment is no request to run without one, with other terms and another token.
        const { file } = gateway.settings.config;
        const changed = await readAgain(gateway, { ...options, config: file }, terminal, runtime);
        if (changed === undefined || signals.isStopping) continue;
        const fixed = findFixed(gateway.settings.config, changed.config);
        if (fixed.length === 0) {
          gateway = await change(gateway, changed, terminal);
          continue;
        }
        const why = `${fixed.join(", ")} changed, which needs a restart`;
        const code = await drain(gateway, `Reloading: ${why};`, terminal);
        if (signals.isStopping) return code;
        gateway = await reopen(gateway, changed, terminal, runtime);
        terminal.print(describeStart(gateway, terminal));
      }
      return await drain(gateway, "Draining:", terminal, " Another signal after a moment stops at once.");
    } finally {
      signals.close();
    }
  },
};

interface OpenGateway {
  readonly running: Running;
  readonly settings: Settings;
}

/** All that a start needs. */
interface Settings extends Loaded {
  /** The generated token of a run without a file. */
  readonly generatedToken?: GeneratedToken;
}

/** Throws a ConfigError with everything that is wrong. */
async function readAll(options: SettingsOptions, terminal: Terminal): Promise<Settings> {
  const loaded = await readSettings(options, terminal);
  if (loaded.config.file !== undefined) return loaded;
  const generatedToken = findOrCreateToken(loaded.config.dataDir);
  return { ...loaded, config: { ...loaded.config, auth: { token: generatedToken.token } }, generatedToken };
}

/** The current settings; undefined, with the reasons told, if the gateway could not run with them. */
async function readAgain(
  gateway: OpenGateway,
  options: SettingsOptions,
  terminal: Terminal,
  runtime: Runtime,
): Promise<Settings | undefined> {
  try {
    const settings = await readAll(options, terminal);
    await runtime.tryAdapters(settings.config);
    return settings;
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    refuse(gateway, describeProblems(thrown), terminal);
    return undefined;
  }
}

/** Says why a gateway does not change: to the operator and, since its readers parse every line, in the log. */
function refuse({ running }: OpenGateway, why: string, terminal: Terminal): void {
  terminal.print(`${why}\nThe gateway continues with its old configuration.`);
  running.log.error({}, `The gateway continues with its old configuration. ${why}`);
}

/** Throws what the operator can do something about. */
async function open(settings: Settings, runtime: Runtime): Promise<OpenGateway> {
  const { config } = settings;
  let running: Running | undefined;
  try {
    running = await runtime.open(config);
    // Not before: only one gateway can open the store, and a token of one that cannot would never be shown.
    storeNewToken(settings);
    return { running, settings };
  } catch (thrown) {
    await running?.close().catch(() => {});
    throw new CommandError(explainFailure(thrown, config.http));
  }
}

/** A new gateway with other settings or, if there can be none, with the old ones: what opened once likely opens again. */
async function reopen(
  { settings: old }: OpenGateway,
  settings: Settings,
  terminal: Terminal,
  runtime: Runtime,
): Promise<OpenGateway> {
  try {
    return await open(settings, runtime);
  } catch (thrown) {
    const why = messageOf(thrown);
    const reopened = await open(asOpened(old), runtime).catch((again: unknown) => {
      throw new CommandError(`${why}\n${messageOf(again)}`);
    });
    refuse(reopened, why, terminal);
    return reopened;
  }
}

function storeNewToken({ config, generatedToken }: Settings): void {
  if (generatedToken?.isNew) storeToken(config.dataDir, generatedToken.token);
}

/** The settings without a token to store: theirs is stored, unless it was rotated since. */
function asOpened(settings: Settings): Settings {
  const { generatedToken } = settings;
  return generatedToken === undefined ? settings : { ...settings, generatedToken: { ...generatedToken, isNew: false } };
}

/** The same gateway with other settings or, if it cannot have them, with the old ones and the reason told. */
async function change(gateway: OpenGateway, settings: Settings, terminal: Terminal): Promise<OpenGateway> {
  try {
    storeNewToken(settings);
    await gateway.running.reload(settings.config);
  } catch (thrown) {
    refuse(gateway, messageOf(thrown), terminal);
    return gateway;
  }
  const changed = { ...gateway, settings };
  terminal.print(
    `Reloaded: new requests see the new configuration, running turns finish under the old.\n${describeStart(changed, terminal)}`,
  );
  return changed;
}

function describeStart({ running: { address }, settings }: OpenGateway, { env }: Terminal): string {
  const { config, warnings, reason, generatedToken } = settings;
  const { console: hasConsole, endpoints } = config.http;
  const on = [endpoints.chat && chatPath, endpoints.responses && "/v1/responses"].filter(Boolean);
  const lines = [
    address === undefined
      ? "is running. No endpoint is on, so no listener is open."
      : `listens on ${address}${everywhere.get(config.http.bind) ?? ""}`,
  ];
  const tell = (name: string, text: string) => lines.push(`  ${name.padEnd(9)}  ${text}`);
  tell("endpoints", on.join(", ") || "none (enable them in gateway.http.endpoints)");
  if (hasConsole && address !== undefined) tell("console", `${address.startsWith("unix:") ? "" : address}/console`);
  const others = Object.keys(config.adapters).filter((name) => name !== config.defaultAdapter);
  const beside = others.length === 0 ? "" : `; others: ${others.join(", ")}`;
  tell("adapter", `${config.defaultAdapter}: ${reason}${beside}`);
  tell("data", config.dataDir);
  const elsewhere = describeElsewhere(config);
  if (elsewhere !== undefined) tell("store", elsewhere);
  const without = `no file, so both endpoints and the console are on (\`${nameOf("init", env)}\` writes one)`;
  tell("config", config.file ?? without);
  for (const { path, message } of warnings) tell("warning", `${path}: ${message}`);
  if (generatedToken?.isNew === false) tell("token", `in ${generatedToken.file}`);
  if (generatedToken?.isNew) {
    tell("token", `${generatedToken.token}  (shown only now; stored in ${generatedToken.file})`);
    if (address !== undefined) lines.push("", ...describeTry(address, settings, generatedToken.token));
  }
  return `Portico ${readVersion()} ${lines.join("\n")}`;
}

/** A wildcard's address is only one of many. */
const everywhere: ReadonlyMap<string, string> = new Map([
  ["0.0.0.0", " and every other IPv4 address of this machine"],
  ["::", " and every other address of this machine"],
]);

/** Where turns are stored, unless that is the data folder. Of a store in memory a warning tells. */
function describeElsewhere({ dataDir, sessions: { store } }: Config): string | undefined {
  const file = fileOfStore(store);
  if (file !== undefined) return dirname(file) === dataDir ? undefined : file;
  return store === "memory:" ? undefined : readAddress(store).shown;
}

const chatPath = "/v1/chat/completions";

function describeTry(address: string, { config, exampleModel }: Loaded, token: string): readonly string[] {
  const { bind } = config.http;
  const target = bind.startsWith("unix:") ? `--unix-socket ${bind.slice("unix:".length)} http://localhost` : address;
  const body = JSON.stringify({ model: exampleModel ?? "MODEL", messages: [{ role: "user", content: "Hello!" }] });
  return [
    `Try it${exampleModel === undefined ? ", with one of its models instead of MODEL" : ""}:`,
    `  curl ${target}${chatPath} -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${body}'`,
  ];
}

async function drain({ running, settings }: OpenGateway, why: string, terminal: Terminal, hurry = ""): Promise<number> {
  const seconds = Math.ceil(settings.config.http.limits.drainTimeoutMs / 1000);
  terminal.print(`${why} running turns have ${seconds} s to finish.${hurry}`);
  try {
    await running.close();
    return 0;
  } catch (thrown) {
    terminal.complain(`Portico did not stop cleanly: ${messageOf(thrown)}`);
    return 1;
  }
}
