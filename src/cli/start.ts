/** `portico start`: runs the gateway until it is told to stop. */
import type { Config } from "../config/config.ts";
import type { Loaded } from "../config/load.ts";
import { forgetToken, keepToken, type KeptToken } from "../config/token.ts";
import type { Command } from "./command.ts";
import { explainFailure } from "./failure.ts";
import type { House, Running } from "./house.ts";
import { configOption, listProblems, readSettings } from "./settings.ts";
import type { StopSignal, Terminal } from "./terminal.ts";
import { readVersion } from "./version.ts";

export const start: Command = {
  summary: "Run the gateway.",
  usage: "start [--config FILE] [--bind ADDRESS] [--port NUMBER]",
  options: {
    ...configOption,
    bind: { value: "ADDRESS", summary: "Listen here instead of at gateway.http.bind." },
    port: { value: "NUMBER", summary: "Listen on this port instead of gateway.http.port." },
  },
  maxPositionals: 0,
  notes: [
    "Without a config file both endpoints are on at 127.0.0.1:8600, and a token is made on the first run.",
    "SIGINT, SIGTERM and SIGHUP let running turns end; another signal after a moment stops at once.",
  ],
  async run({ options }, terminal, house) {
    const loaded = await readSettings(options, terminal, house);
    if (loaded.warnings.length > 0) terminal.complain(listProblems(loaded.warnings, "warning: "));
    const kept = loaded.config.file === undefined ? keepToken(loaded.config.dataDir) : undefined;
    const config = kept === undefined ? loaded.config : { ...loaded.config, auth: { token: kept.token } };
    const running = await open(config, kept, terminal, house);
    if (running === undefined) return 1;
    // Whoever reads the first line may send a signal at once.
    const stopped = waitForStop(terminal);
    terminal.print(describeStart(running.address, loaded, kept));
    await stopped;
    return drain(running, config, terminal);
  },
};

async function open(
  config: Config,
  kept: KeptToken | undefined,
  terminal: Terminal,
  house: House,
): Promise<Running | undefined> {
  try {
    return await house.open(config);
  } catch (thrown) {
    // A token that nobody has seen would never be shown.
    if (kept?.isNew) forgetToken(kept);
    terminal.complain(explainFailure(thrown, config.http));
    return undefined;
  }
}

function describeStart(address: string | undefined, loaded: Loaded, kept: KeptToken | undefined): string {
  const { config, reason } = loaded;
  const { compatChat, compatResponses } = config.http.endpoints;
  const paths = [...(compatChat ? ["/v1/chat/completions"] : []), ...(compatResponses ? ["/v1/responses"] : [])];
  const lines = [
    address === undefined
      ? `Portico ${readVersion()} runs. No endpoint is on, so no listener is open.`
      : `Portico ${readVersion()} listens on ${address}`,
    `  endpoints  ${paths.length === 0 ? "none (switch them on in gateway.http.endpoints)" : paths.join(", ")}`,
    `  adapter    ${config.defaultAdapter}: ${reason}`,
    `  data       ${config.dataDir}`,
    `  config     ${config.file ?? "no file, so both endpoints are on (`portico init` writes one)"}`,
  ];
  if (kept !== undefined) {
    const text = kept.isNew ? `${kept.token}  (shown only now; kept in ${kept.file})` : `in ${kept.file}`;
    lines.push(`  token      ${text}`);
  }
  if (kept?.isNew && address !== undefined) lines.push("", "Try it:", `  ${curlLine(address, loaded, kept.token)}`);
  return lines.join("\n");
}

function curlLine(address: string, { config, exampleModel }: Loaded, token: string): string {
  const { bind } = config.http;
  const target = bind.startsWith("unix:") ? `--unix-socket ${bind.slice("unix:".length)} http://localhost` : address;
  const body = JSON.stringify({ model: exampleModel, messages: [{ role: "user", content: "Hello!" }] });
  return `curl ${target}/v1/chat/completions -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${body}'`;
}

/** What a shell expects of a process that a signal ended. */
const exitCodes: Readonly<Record<StopSignal, number>> = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

function waitForStop(terminal: Terminal): Promise<void> {
  return new Promise((resolve) => {
    // Without a listener nothing else keeps the process alive.
    const alive = setInterval(() => {}, 2_147_483_647);
    let askedAt: number | undefined;
    terminal.onStop((signal) => {
      const now = terminal.now().getTime();
      if (askedAt !== undefined && Math.abs(now - askedAt) >= sameWishMs) terminal.exit(exitCodes[signal]);
      askedAt ??= now;
      clearInterval(alive);
      resolve();
    });
  });
}

/** npm sends a terminal's Ctrl-C on to the gateway, which has had it already: what follows so soon is the same wish. */
const sameWishMs = 500;

async function drain(running: Running, config: Config, terminal: Terminal): Promise<number> {
  const seconds = Math.ceil(config.http.limits.drainTimeoutMs / 1000);
  terminal.print(`Draining: running turns have ${seconds} s to end. Another signal after a moment stops at once.`);
  try {
    await running.close();
    return 0;
  } catch (thrown) {
    terminal.complain(`Portico did not stop cleanly: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    return 1;
  }
}
