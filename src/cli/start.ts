/** `portico start`: runs the gateway until it is told to stop, and reloads its configuration when told to. */
import { hideUser } from "../config/read.ts";
import { keepTokens } from "../config/token.ts";
import type { Portico } from "../portico.ts";
import { fileOf } from "../store/open.ts";
import { type Command, nameOf, readVersion } from "./command.ts";
import { explain, openGateway } from "./open.ts";
import { complain, messageOf, outlastOutput, print } from "./output.ts";
import { configOption, readSettings, type Settings, type SettingsOptions } from "./settings.ts";
import { listenForSignals } from "./signals.ts";

export const start: Command = {
  summary: "Run the gateway.",
  usage: "start [--config FILE] [--bind ADDRESS] [--port NUMBER]",
  options: {
    ...configOption,
    bind: { value: "ADDRESS", summary: "Listen here instead of at gateway.http.bind." },
    port: { value: "NUMBER", summary: "Listen on this port instead of gateway.http.port." },
  },
  notes: [
    "Without a config file, both endpoints and the console are on at 127.0.0.1:8600, and the first run makes a token for clients and one for the operator.",
    "SIGINT and SIGTERM let running turns finish; a second signal after a moment stops at once.",
    "SIGHUP reloads the configuration: new requests see all of it or, if anything is wrong or needs a restart, none. At a terminal SIGHUP stops the gateway: its window was closed.",
  ],
  async run({ options }) {
    let gateway = await open(await readSettings(options));
    const signals = listenForSignals();
    outlastOutput();
    print(describeStart(gateway.running.address, gateway.settings));
    while ((await signals.next()) === "reload") gateway = await reload(gateway, options);
    return drain(gateway);
  },
};

interface OpenGateway {
  readonly running: Pick<Portico, "address" | "log" | "reload" | "close">;
  readonly settings: Settings;
}

/** Throws what the operator can do something about. */
async function open(settings: Settings): Promise<OpenGateway> {
  const { config } = settings;
  const isAlone = config.workers === 1;
  const running = isAlone ? await openGateway(config) : await (await import("./workers.ts")).openWorkers(config);
  // Not before: only one gateway has the store, and a token of one that cannot run would never be shown.
  if (settings.generated !== undefined) keepTokens(settings.generated);
  return { running, settings };
}

/** The same gateway with the current settings or, if it cannot have them, with the old ones. */
async function reload(gateway: OpenGateway, options: SettingsOptions): Promise<OpenGateway> {
  const { running, settings: old } = gateway;
  try {
    // A file that is missing for a moment is no request to run without one, with other terms and tokens.
    const settings = await readSettings({ ...options, config: old.config.file });
    if (settings.generated !== undefined) keepTokens(settings.generated);
    await running.reload(settings.config);
    const done = "Reloaded: new requests see the new configuration, running turns finish under the old.";
    print(`${done}\n${describeStart(running.address, settings)}`);
    return { running, settings };
  } catch (thrown) {
    const why = explain(thrown);
    print(`${why}\nThe gateway continues with its old configuration.`);
    // The readers of the log parse every line.
    running.log.error({}, `The gateway continues with its old configuration. ${why}`);
    return gateway;
  }
}

async function drain({ running, settings }: OpenGateway): Promise<number> {
  const seconds = Math.ceil(settings.config.http.limits.drainTimeoutMs / 1000);
  print(`Draining: running turns have ${seconds} s to finish. Another signal after a moment stops at once.`);
  try {
    await running.close();
    return 0;
  } catch (thrown) {
    complain(`Portico did not stop cleanly: ${messageOf(thrown)}`);
    return 1;
  }
}

/** What is said when the gateway runs: where it listens, what it uses, and how to try it. */
function describeStart(address: string | undefined, settings: Settings): string {
  const { config, warnings, reason, generated } = settings;
  const { endpoints } = config.http;
  const on = [endpoints.chat && chatPath, endpoints.responses && "/v1/responses"].filter((path) => path !== false);
  const lines = [
    ["endpoints", on.join(", ") || "none (see gateway.http.endpoints), so nothing listens"],
    ...describeConsole(address, settings),
    ["adapter", `${config.defaultAdapter}: ${reason}`],
    ["store", fileOf(config.store) ?? hideUser(config.store)],
    ...(config.workers === 1 ? [] : [["workers", describeWorkers(config.workers)]]),
    ...warnings.map(({ path, message }) => ["warning", `${path}: ${message}`]),
    ...(generated === undefined ? [] : [["token", `in ${generated.client.file}`]]),
    // Whoever waits for the start waits for this line.
    ["config", config.file ?? `no file, so all is on (\`${nameOf("init")}\` writes one)`],
  ].map(([name = "", text]) => `  ${name.padEnd(9)}  ${text}`);
  const listens = address === undefined ? "is running" : `listens on ${address}`;
  const trial = generated?.client.isNew && address?.startsWith("http") ? describeTrial(address, settings) : [];
  return [`Portico ${readVersion()} ${listens}`, ...lines, ...trial].join("\n");
}

function describeWorkers(count: number): string {
  return `${count} processes, each with 1/${count} of the limits on rates, concurrent and background turns, and connections`;
}

const chatPath = "/v1/chat/completions";

/** A new token of the operator's stands in the fragment, which no browser sends. */
function describeConsole(address: string | undefined, { config, generated }: Settings): readonly string[][] {
  if (!config.http.hasConsole || address === undefined || address.startsWith("unix:")) return [];
  const link = `${address}/console`;
  if (generated === undefined) return [["console", link]];
  const { token, file, isNew } = generated.operator;
  return [["console", isNew ? `${link}#token=${token}  (kept in ${file})` : `${link}, with the token in ${file}`]];
}

/** Shows the clients' token, this one time. */
function describeTrial(address: string, { exampleModel: model = "MODEL", generated }: Settings): readonly string[] {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello!" }] });
  const token = generated?.client.token;
  return [
    "",
    "Try it (the token is shown only now):",
    `  curl ${address}${chatPath} -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${body}'`,
  ];
}
