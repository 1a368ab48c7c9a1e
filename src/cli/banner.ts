/** What `portico start` says when the gateway runs: where it listens, what it uses, and how to try it. */
import { dirname } from "node:path";
import { nameOf, readVersion } from "./help.ts";
import type { Settings } from "./settings.ts";

export function describeStart(address: string | undefined, settings: Settings): string {
  const { config, warnings, reason, generated } = settings;
  const { endpoints } = config.http;
  const on = [endpoints.chat && chatPath, endpoints.responses && "/v1/responses"].filter((path) => path !== false);
  const others = Object.keys(config.adapters).filter((name) => name !== config.defaultAdapter);
  const lines = [
    ["endpoints", on.join(", ") || "none (see gateway.http.endpoints), so nothing listens"],
    ...describeConsole(address, settings),
    ["adapter", `${config.defaultAdapter}: ${reason}${others.length === 0 ? "" : `; others: ${others.join(", ")}`}`],
    ["data", config.dataDir],
    ...(dirname(config.storeFile) === config.dataDir ? [] : [["store", config.storeFile]]),
    ...warnings.map(({ path, message }) => ["warning", `${path}: ${message}`]),
    ...(generated === undefined ? [] : [["token", `in ${generated.client.file}`]]),
    // Whoever waits for the start waits for this line.
    ["config", config.file ?? `no file, so all is on (\`${nameOf("init")}\` writes one)`],
  ].map(([name = "", text]) => `  ${name.padEnd(9)}  ${text}`);
  const listens = address === undefined ? "is running" : `listens on ${address}`;
  const trial = generated?.client.isNew && address !== undefined ? describeTrial(address, settings) : [];
  return [`Portico ${readVersion()} ${listens}`, ...lines, ...trial].join("\n");
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
function describeTrial(address: string, { config, exampleModel, generated }: Settings): readonly string[] {
  const { bind } = config.http;
  const target = bind.startsWith("unix:") ? `--unix-socket ${bind.slice("unix:".length)} http://localhost` : address;
  const body = JSON.stringify({ model: exampleModel ?? "MODEL", messages: [{ role: "user", content: "Hello!" }] });
  const token = generated?.client.token;
  return [
    "",
    `Try it${exampleModel === undefined ? ", with one of its models instead of MODEL" : ""} (the token is shown only now):`,
    `  curl ${target}${chatPath} -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${body}'`,
  ];
}
